"""Law ANSWER: every call to an implementation comes back, with a value that can be used, in bounded time.

`Guarded` wraps a scheduler under test.  Whatever it does - raise, hang, return junk, change its
input - becomes a violation with a signature; nothing of it escapes as a traceback of ours.
"""

from __future__ import annotations

import dataclasses
import operator
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from types import FrameType, MappingProxyType
from typing import Any, TypeVar

from conformance import shapes
from conformance.protocol import SchedulerUnderTest
from spec.laws import Violation
from spec.observer import Inspection
from spec.vocabulary import Config, ModelOutput, Refused, Request, StepPlan, StepResult

T = TypeVar("T")


class BrokenAnswer(Exception):
    """A call that was not answered as law ANSWER demands."""

    def __init__(self, signature: str, message: str) -> None:
        super().__init__(message)
        self.violation = Violation("ANSWER", signature, message)


class _TimeUp(BaseException):
    """Raised inside a call that took too long; not an Exception, so that no adapter swallows it by accident."""


def make(factory: Callable[[Config], SchedulerUnderTest], config: Config, time_limit_s: float) -> Guarded:
    """A guarded scheduler; raises BrokenAnswer if the factory fails."""
    scheduler = _call("the factory", time_limit_s, factory, config)
    problem = _read("the factory", time_limit_s, shapes.factory_problems(scheduler))
    if problem is not None:
        raise BrokenAnswer("no scheduler", f"the factory returned {problem}")
    return Guarded(scheduler, config.num_blocks, time_limit_s)


class Guarded:
    """A scheduler whose every answer was checked for its shape."""

    def __init__(self, scheduler: SchedulerUnderTest, num_blocks: int, time_limit_s: float) -> None:
        self._scheduler = scheduler
        self._num_blocks = num_blocks
        self._time_limit_s = time_limit_s

    def add(self, request: Request) -> str | None:
        """None, or the reason of a refusal."""
        given = dataclasses.replace(request)
        try:
            self._ask("add", given, allowed=Refused)
        except Refused as refusal:
            reason: str = _call("the reason that add() gives", self._time_limit_s, str, refusal)
            return reason or "refused"
        if _call("reading the request after add()", self._time_limit_s, operator.ne, given, request):
            raise BrokenAnswer("input changed", f"add() changed the request {request.request_id} that it was given")
        return None

    def abort(self, request_id: str) -> None:
        self._ask("abort", request_id)

    def grammar_ready(self, request_id: str) -> None:
        self._ask("grammar_ready", request_id)

    def reset_prefix_cache(self) -> bool:
        done = self._ask("reset_prefix_cache")
        self._check("reset_prefix_cache", "malformed reset", shapes.reset_problems(done))
        assert isinstance(done, bool)
        return done

    def schedule(self) -> StepPlan:
        plan = self._ask("schedule")
        self._check("schedule", "malformed plan", shapes.plan_problems(plan))
        assert isinstance(plan, StepPlan)
        return plan

    def commit(self, plan: StepPlan, output: ModelOutput) -> StepResult:
        sampled, drafts = dict(output.sampled), dict(output.drafts)
        given = ModelOutput(MappingProxyType(sampled), MappingProxyType(drafts))
        views = {"sampled": given.sampled, "drafts": given.drafts}
        result = self._ask("commit", plan, given)
        replaced = any(getattr(given, name, None) is not view for name, view in views.items())
        if replaced or sampled != output.sampled or drafts != output.drafts:
            raise BrokenAnswer("input changed", "commit() changed the model output that it was given")
        self._check("commit", "malformed result", shapes.result_problems(result))
        assert isinstance(result, StepResult)
        return result

    def inspect(self, blocks: Collection[int] | None = None) -> Inspection | None:
        seen = self._ask("inspect", blocks)
        if seen is None:
            return None
        self._check("inspect", "malformed inspection", shapes.inspection_problems(seen, self._num_blocks))
        assert isinstance(seen, Inspection)
        return seen

    def _ask(self, method: str, *arguments: object, allowed: type[Exception] | None = None) -> object:
        """The answer of a method, which is looked up in the same guarded call: that may fail as well."""
        what, limit = f"{method}()", self._time_limit_s
        return _call(what, limit, lambda: getattr(self._scheduler, method)(*arguments), allowed=allowed)

    def _check(self, method: str, signature: str, problems: Iterator[str]) -> None:
        problem = _read(f"{method}()", self._time_limit_s, problems)
        if problem is not None:
            raise BrokenAnswer(signature, f"{method}() returned {problem}")


# --- calls ---------------------------------------------------------------------------------------


def _read(what: str, time_limit_s: float, problems: Iterator[str]) -> str | None:
    """The first problem of an answer.  To show a value is to call its `__repr__`, so that is a call as well."""
    problem: str | None = _call(f"reading what {what} returned", time_limit_s, next, problems, None)
    return problem


def _call(
    what: str,
    time_limit_s: float,
    function: Callable[..., T],
    *arguments: object,
    allowed: type[Exception] | None = None,
) -> T:
    """What a call returns; raises BrokenAnswer for all else, but for a KeyboardInterrupt and for `allowed`."""
    alarm = _Alarm(time_limit_s)
    try:
        with alarm:
            answer = function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if alarm.rang:
            raise _no_answer(what, time_limit_s) from None
        if allowed is not None and isinstance(error, allowed):
            raise
        raise _raised(what, error) from error
    if alarm.rang:
        raise _no_answer(what, time_limit_s)
    return answer


def _no_answer(what: str, time_limit_s: float) -> BrokenAnswer:
    return BrokenAnswer("no answer", f"{what} did not come back within {time_limit_s:g} s")


def _raised(what: str, error: BaseException) -> BrokenAnswer:
    kind = type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    place = frames[-1].name if frames else what
    line = f", in {place}, line {frames[-1].lineno}" if frames else ""
    try:
        text = f": {error}" if str(error) else ""
    except Exception as second:
        text = f", whose text cannot be read ({type(second).__name__})"
    return BrokenAnswer(f"{kind} in {place}", f"{what} raised {kind}{text}{line}")


class _Alarm:
    """Interrupts what runs under it once the time is up; without effect outside the main thread.

    An adapter may swallow the interruption.  So the alarm goes on ringing until it is left, and each time it
    interrupts twice: where it finds the adapter, and in the next line, which may be that of an `except`.  What never
    comes back from C cannot be interrupted, nor what swallows two of them in nested loops.
    """

    PAUSE_S = 0.01

    def __init__(self, seconds: float) -> None:
        self.rang = False
        self._seconds = seconds
        self._works = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._works:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self._seconds, self.PAUSE_S)

    def __exit__(self, *error: object) -> None:
        if self._works:
            self._works = False
            if self.rang:
                sys.settrace(self._traced_before)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        if not self._works or frame is None or frame.f_code.co_filename == __file__:
            return
        if not self.rang:
            self.rang = True
            self._traced_before = sys.gettrace()
        while frame is not None and frame.f_code.co_filename != __file__:
            frame.f_trace = self._next_line
            frame = frame.f_back
        sys.settrace(self._next_line)
        raise _TimeUp

    def _next_line(self, frame: FrameType, event: str, argument: object) -> Any:
        if not self._works or frame.f_code.co_filename == __file__:
            return None
        if event == "line":
            raise _TimeUp
        return self._next_line
