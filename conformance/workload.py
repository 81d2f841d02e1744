"""Workloads: an implementation driven by a public request trace, judged in lockstep from the first row to the last.

A trace is brought to the size of a pool by `scale`: of every prompt and every output each `scale`-th token is
kept, so that shared prefixes stay shared.  One scheduler step stands for so many milliseconds of the trace.  A
request is made when its time has come and forgotten when it has ended; what stays are the rows, and in the spec
and the observer the meaning of every prefix key.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, cast

from conformance.arrivals import Arrival, prompt
from conformance.lockstep import Ended, Failure, Judge, Session
from conformance.protocol import Implementation, SchedulerUnderTest
from spec.events import Add, StepEvent
from spec.formulas import ceil_div, least, most
from spec.model import Script
from spec.scheduler import Oracle
from spec.validity import InvalidInput, check_config
from spec.vocabulary import Admission, Config, Request, StepPlan

DEFAULT_SCALE = 4
DEFAULT_CONFIG = Config(
    num_blocks=513,
    block_size=16,
    max_num_batched_tokens=1024,
    max_num_seqs=128,
    max_model_len=4096,
    long_prefill_token_threshold=128,
)
"""A pool that two of the longest requests fill.  The threshold lets several prompts be computed side by side, more
than the pool can hold to their end, so that preemptions never cease."""

OWN_TOKENS = 1 << 40
"""From here on token ids belong to one request each; hash ids of a trace stay below."""


@dataclass(frozen=True)
class Workload:
    """Arrivals, brought to the size of a configuration.

    `ms_per_step` is how many milliseconds of the trace one scheduler step stands for.
    """

    arrivals: Sequence[Arrival]
    config: Config
    scale: int
    ms_per_step: float

    def lengths(self, arrival: Arrival) -> tuple[int, int]:
        """Tokens of the prompt and of the output, each at least 1, cut so that the request fits alone."""
        config = self.config
        longest = least(config.max_model_len, (config.num_blocks - 1) * config.block_size)
        output = least(ceil_div(arrival.output_tokens, self.scale), longest - longest // 2)
        return least(ceil_div(arrival.prompt_tokens, self.scale), most(longest - output, 1)), output

    def clips(self, arrival: Arrival) -> bool:
        """Whether the configuration is too small for the scaled lengths."""
        whole = (ceil_div(arrival.prompt_tokens, self.scale), ceil_div(arrival.output_tokens, self.scale))
        return self.lengths(arrival) != whole

    def request(self, arrival: Arrival) -> Add:
        """The request of a row, named after its line, with what it will say."""
        tokens, output = self.lengths(arrival)
        first = OWN_TOKENS + arrival.line * self.config.max_model_len
        own = range(first, first + tokens + output)
        request = Request(f"line-{arrival.line}", prompt(arrival, self.scale, tokens, own), max_tokens=output)
        return Add(request, Script(own[tokens:]))


def fit(
    arrivals: Sequence[Arrival], config: Config = DEFAULT_CONFIG, scale: int = DEFAULT_SCALE, speed: float | None = None
) -> Workload:
    """The workload of these rows; without `speed`, the pool or the budget is just full on average.

    Raises InvalidInput for an impossible configuration, scale or speed (milliseconds a step).
    """
    check_config(config)
    if config.max_model_len < 2:
        raise InvalidInput("max_model_len", "must be at least 2 tokens for a workload, a prompt and an output")
    if scale < 1:
        raise InvalidInput("scale", f"must be at least 1, not {scale}")
    if speed is not None and not 0 < speed < float("inf"):
        raise InvalidInput("speed", f"must be more than 0 ms a step, not {speed}")
    workload = Workload(arrivals, config, scale, speed or 1.0)
    return workload if speed else replace(workload, ms_per_step=_full_pace(workload))


def _full_pace(workload: Workload) -> float:
    """Milliseconds a step at which requests arrive as fast as pool and budget can serve them, hits left out."""
    config = workload.config
    tokens = block_steps = 0
    for arrival in workload.arrivals:
        prompt_tokens, output = workload.lengths(arrival)
        tokens += prompt_tokens + output
        block_steps += ceil_div(prompt_tokens + output, config.block_size) * (output + 1)
    steps = max(tokens / config.max_num_batched_tokens, block_steps / (config.num_blocks - 1))
    return max(workload.arrivals[-1].at_ms / steps, 1e-3)


@dataclass
class Summary:
    """What a run did.  `seconds`: by the side that took them, `implementation`, `inspection`, `spec`, `judging`."""

    requests: int = 0
    clipped: int = 0
    given_up: int = 0
    sessions: int = 0
    steps: int = 0
    tokens: int = 0
    preemptions: int = 0
    hits: int = 0
    hit_tokens: int = 0
    most_running: int = 0
    most_live: int = 0
    shown: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    def count(self, plan: StepPlan) -> None:
        self.steps += 1
        self.preemptions += len(plan.preempted)
        for grant in plan.grants:
            self.tokens += grant.tokens
            if grant.admission is not Admission.RUNNING and grant.start > grant.external:
                self.hits += 1
                self.hit_tokens += grant.start - grant.external


class FailedWorkload(Exception):
    """A failure in step `summary.steps + 1`, with the rows of the trace that its text names."""

    def __init__(self, failure: Failure, summary: Summary, rows: Sequence[Arrival]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.summary = summary
        self.rows = rows


def drive(
    implementation: Implementation,
    judge: Judge,
    workload: Workload,
    progress: Callable[[int], None] = lambda requests: None,
) -> Summary:
    """Runs a workload to its end; raises FailedWorkload at the first violation that is not known.

    Behind a known deviation that ends a session the rest of the rows goes on in a new one; what was live is given up.
    `progress` is told after each step how many requests have arrived.
    """
    run = _Run(implementation, judge, workload, Summary())
    start = perf_counter()
    try:
        while run.arrived < len(workload.arrivals):
            run.one_session(progress)
    except Failure as failure:
        named = {int(line) for line in re.findall(r"line-(\d+)", f"{failure}\n{failure.sides}")}
        rows = [arrival for arrival in workload.arrivals if arrival.line in named]
        raise FailedWorkload(failure, run.summary, rows) from failure
    finally:
        seconds = run.summary.seconds
        seconds["judging"] = perf_counter() - start - sum(seconds.values())
    return run.summary


class _Run:
    """The way through a workload: which rows have arrived, and what time it is in the trace."""

    def __init__(self, implementation: Implementation, judge: Judge, workload: Workload, summary: Summary) -> None:
        self.implementation = replace(implementation, factory=self._timed_scheduler(implementation))
        self.judge = judge
        self.workload = workload
        self.summary = summary
        self.arrived = 0
        self.now_ms = 0.0

    def one_session(self, progress: Callable[[int], None]) -> None:
        session = Session(self.implementation, self.workload.config, self.judge, record=False)
        session.oracle = cast(Oracle, Timed(session.oracle, self.summary.seconds, {}, "spec"))
        self.summary.sessions += 1
        try:
            while self.arrived < len(self.workload.arrivals) or session.observer.live:
                self._let_arrive(session)
                self._step(session)
                progress(self.arrived)
            self._step(session)
            session.look_inside()
        except Ended:
            self.summary.given_up += len(session.observer.live)
        finally:
            self.summary.shown.update(session.shown)

    def _let_arrive(self, session: Session) -> None:
        """Adds what is due; when nothing is live, time goes on to the next arrival at once."""
        arrivals = self.workload.arrivals
        if not session.observer.live:
            self.now_ms = max(self.now_ms, arrivals[self.arrived].at_ms)
        while self.arrived < len(arrivals) and arrivals[self.arrived].at_ms <= self.now_ms:
            arrival = arrivals[self.arrived]
            self.arrived += 1
            self.summary.requests += 1
            self.summary.clipped += self.workload.clips(arrival)
            session.apply(self.workload.request(arrival))
        self.summary.most_live = max(self.summary.most_live, len(session.observer.live))

    def _step(self, session: Session) -> None:
        session.apply(StepEvent())
        self.now_ms += self.workload.ms_per_step
        plan = session.last_plan
        assert plan is not None
        self.summary.count(plan)
        for request_id in plan.finished:
            session.scripts.pop(request_id, None)
        self.summary.most_running = max(self.summary.most_running, len(session.observer.running))

    def _timed_scheduler(self, implementation: Implementation) -> Callable[[Config], SchedulerUnderTest]:
        def make(config: Config) -> SchedulerUnderTest:
            made = implementation.factory(config)
            other = {"inspect": "inspection"}
            return cast(SchedulerUnderTest, Timed(made, self.summary.seconds, other, "implementation"))

        return make


class Timed:
    """Any object, with the seconds spent in its methods added up: by method where `names` has it, else under `rest`."""

    def __init__(self, inner: object, seconds: defaultdict[str, float], names: dict[str, str], rest: str) -> None:
        self._inner = inner
        self._seconds = seconds
        self._names = names
        self._rest = rest

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        side, seconds = self._names.get(name, self._rest), self._seconds

        def timed(*arguments: object) -> object:
            start = perf_counter()
            try:
                return found(*arguments)
            finally:
                seconds[side] += perf_counter() - start

        self.__dict__[name] = timed  # found at once from the next call on
        return timed
