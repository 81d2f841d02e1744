"""Law ANSWER: every call to an implementation comes back, with a value that can be used, in bounded time.

`Guarded` wraps a scheduler under test.  Whatever it does - raise, hang, return junk, change its
input - becomes a violation with a signature; nothing of it escapes as a traceback of ours.
"""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from types import MappingProxyType
from typing import TypeVar

from conformance.protocol import SchedulerUnderTest
from spec.laws import Violation
from spec.observer import Inspection
from spec.vocabulary import (
    Admission,
    Config,
    Finish,
    FinishReason,
    Grant,
    ModelOutput,
    Refused,
    Request,
    StepPlan,
    StepResult,
)

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
    for method in ("add", "abort", "schedule", "commit"):
        if not callable(getattr(scheduler, method, None)):
            raise BrokenAnswer("no scheduler", f"the factory returned {_short(scheduler)}, which has no {method}()")
    return Guarded(scheduler, time_limit_s)


class Guarded:
    """A scheduler whose every answer was checked for its shape."""

    def __init__(self, scheduler: SchedulerUnderTest, time_limit_s: float) -> None:
        self._scheduler = scheduler
        self._time_limit_s = time_limit_s

    def add(self, request: Request) -> str | None:
        """None, or the reason of a refusal."""
        given = dataclasses.replace(request)
        try:
            _call("add()", self._time_limit_s, self._scheduler.add, given)
        except Refused as refusal:
            return str(refusal) or "refused"
        if given != request:
            raise BrokenAnswer("input changed", f"add() changed the request {request.request_id} that it was given")
        return None

    def abort(self, request_id: str) -> None:
        _call("abort()", self._time_limit_s, self._scheduler.abort, request_id)

    def grammar_ready(self, request_id: str) -> None:
        _call("grammar_ready()", self._time_limit_s, self._scheduler.grammar_ready, request_id)

    def reset_prefix_cache(self) -> bool:
        done = _call("reset_prefix_cache()", self._time_limit_s, self._scheduler.reset_prefix_cache)
        if type(done) is not bool:
            raise BrokenAnswer("malformed reset", f"reset_prefix_cache() returned {_short(done)}, not a bool")
        return done

    def schedule(self) -> StepPlan:
        plan = _call("schedule()", self._time_limit_s, self._scheduler.schedule)
        problem = next(_plan_problems(plan), None)
        if problem is not None:
            raise BrokenAnswer("malformed plan", f"schedule() returned {problem}")
        return plan

    def commit(self, plan: StepPlan, output: ModelOutput) -> StepResult:
        sampled, drafts = dict(output.sampled), dict(output.drafts)
        given = ModelOutput(MappingProxyType(sampled), MappingProxyType(drafts))
        result = _call("commit()", self._time_limit_s, self._scheduler.commit, plan, given)
        if sampled != output.sampled or drafts != output.drafts:
            raise BrokenAnswer("input changed", "commit() changed the model output that it was given")
        problem = next(_result_problems(result), None)
        if problem is not None:
            raise BrokenAnswer("malformed result", f"commit() returned {problem}")
        return result

    def inspect(self, blocks: Collection[int] | None = None) -> Inspection | None:
        seen = _call("inspect()", self._time_limit_s, self._scheduler.inspect, blocks)
        if seen is not None and not isinstance(seen, Inspection):
            raise BrokenAnswer("malformed inspection", f"inspect() returned {_short(seen)}")
        return seen


def _call(what: str, time_limit_s: float, function: Callable[..., T], *arguments: object) -> T:
    try:
        with _time_limit(time_limit_s):
            return function(*arguments)
    except Refused:
        raise
    except _TimeUp:
        raise BrokenAnswer("no answer", f"{what} did not come back within {time_limit_s:g} s") from None
    except (Exception, SystemExit) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        kind = type(error).__name__
        text = f": {error}" if str(error) else ""
        raise BrokenAnswer(
            f"{kind} in {frame.name}", f"{what} raised {kind}{text}, in {frame.name}, line {frame.lineno}"
        ) from error


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupts the block after `seconds`; without effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def time_up(signum: int, frame: object) -> None:
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, time_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- shapes --------------------------------------------------------------------------------------


def _plan_problems(plan: object) -> Iterator[str]:
    if not isinstance(plan, StepPlan):
        yield f"{_short(plan)}, not a StepPlan"
        return
    if type(plan.grants) is not tuple:
        yield f"grants of {_short(plan.grants)}, not a tuple"
        return
    for grant in plan.grants:
        if type(grant) is not Grant:
            yield f"a grant {_short(grant)}"
            return
        if (
            type(grant.request_id) is not str
            or type(grant.start) is not int
            or type(grant.tokens) is not int
            or type(grant.external) is not int
            or type(grant.admission) is not Admission
        ):
            yield f"a grant with a field of the wrong type: {_short(grant)}"
            return
        if grant.start < 0 or grant.external < 0 or grant.external > grant.start:
            yield f"a grant with an impossible position: {_short(grant)}"
        for name in ("blocks", "drafts", "items"):
            numbers = getattr(grant, name)
            if type(numbers) is not tuple or any(type(n) is not int or n < 0 for n in numbers):
                yield f"{name} of {grant.request_id} that are not whole numbers: {_short(numbers)}"
    for name, ids in (("preempted", plan.preempted), ("finished", plan.finished)):
        if type(ids) is not tuple or any(type(i) is not str for i in ids):
            yield f"{name} of {_short(ids)}, not a tuple of request ids"
    if type(plan.freed_items) is not tuple or any(not _is_pair(e, str, int) for e in plan.freed_items):
        yield f"freed_items of {_short(plan.freed_items)}, not (request id, item) pairs"


def _result_problems(result: object) -> Iterator[str]:
    if not isinstance(result, StepResult):
        yield f"{_short(result)}, not a StepResult"
        return
    if type(result.emitted) is not tuple or any(not _is_pair(e, str, tuple) for e in result.emitted):
        yield f"emitted of {_short(result.emitted)}, not (request id, tokens) pairs"
        return
    for request_id, tokens in result.emitted:
        if any(type(token) is not int for token in tokens):
            yield f"tokens of {request_id} that are not whole numbers: {_short(tokens)}"
    if type(result.finished) is not tuple:
        yield f"finished of {_short(result.finished)}, not a tuple"
        return
    for end in result.finished:
        if type(end) is not Finish or type(end.reason) is not FinishReason:
            yield f"an end {_short(end)}, not a Finish"


def _is_pair(value: object, first: type, second: type) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and type(value[0]) is first and type(value[1]) is second


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # a hostile __repr__ must not become our traceback
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= 200 else text[:197] + "..."
