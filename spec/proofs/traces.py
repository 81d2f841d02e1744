"""Counterexamples of z3 as runs: the state of the model is reached by events, then the running spec takes the step.

A run is replayed on the same text that was refuted, with Python's own numbers, and judged by the laws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from spec import laws
from spec.events import Add, Event, StepEvent
from spec.model import Script, answer
from spec.observer import Observer
from spec.proofs import counterexamples, sources
from spec.proofs.counterexamples import DEADLOCK, DEDUCTION, POLICY, Expected
from spec.proofs.proving import Failure
from spec.vocabulary import PROFILES, Config, Profile, Refused, Request

PROFILE = "vllm-0.8.5"


@dataclass(frozen=True)
class Run:
    """A counterexample that can be replayed."""

    name: str
    config: Config
    events: tuple[Event, ...]
    beside: tuple[str, ...] = ()
    """Laws that the policy of the run does not promise."""


def replay(run: Run, scheduler: Any) -> str:
    """What breaks first when `scheduler` is driven through a run; empty if nothing does."""
    observer, scripts = Observer(run.config), {}
    for event in run.events:
        if isinstance(event, Add):
            try:
                scheduler.add(event.request)
            except Refused as refused:
                return f"refused: {refused}"
            if broken := laws.check_add(observer, event.request):
                return str(broken[0])
            observer.add(event.request)
            scripts[event.request.request_id] = event.script
        elif isinstance(event, StepEvent) and (broken_by := _step(run, scheduler, observer, scripts)):
            return broken_by
    return ""


def _step(run: Run, scheduler: Any, observer: Observer, scripts: dict[str, Script]) -> str:
    try:
        plan = scheduler.schedule()
    except KeyError as error:
        return f"POOL: the free queue is empty and a block is taken from it ({error.args[0]})"
    broken = laws.check_plan(observer, plan)
    step = observer.apply(plan)
    broken += laws.check_step(observer, step)
    for violation in broken:
        if violation.law not in run.beside:
            return str(violation)
    output = answer(run.config, observer, scripts, plan)
    result = scheduler.commit(plan, output)
    observer.settle(step, output, result)
    return ""


# --- from models to runs -------------------------------------------------------------------------


def _numbers(failure: Failure) -> Callable[[str, int], int]:
    return lambda name, when: int(failure.values[name][when])


def deduction(failure: Failure) -> Run:
    """`b` hits what `a` left behind in the free queue, while `c` holds the rest of the pool."""
    value = _numbers(failure)
    size, blocks = value("block_size", 0), value("num_blocks", 0)
    hits, known = value("own computed", 1) // size, value("own known", 0)
    held = blocks - 1 - value("free size", 0)
    config = Config(blocks, size, known + blocks * size, 3, max(value("max_model_len", 0), blocks * size))
    prompt = tuple(range(100, 100 + known))
    events: list[Event] = [Add(Request("a", prompt[: hits * size], 1), Script())]
    if held:
        events.append(Add(Request("c", tuple(range(500, 500 + held * size - 1)), 2), Script()))
    events += [StepEvent(), Add(Request("b", prompt, 1), Script()), StepEvent()]
    return Run("evictable-block-deduction-dropped", config, tuple(events))


def deadlock(failure: Failure) -> Run:
    """One request that is longer than the pool."""
    value = _numbers(failure)
    known = value("own known", 0)
    config = Config(value("num_blocks", 0), value("block_size", 0), 2 * known, 1, max(value("max_model_len", 0), known))
    return Run("never-fits", config, (Add(Request("a", tuple(range(100, 100 + known)), 1), Script()), StepEvent()))


def policy(_: Failure) -> Run:
    """`low` is granted two blocks and loses them to `high` in the same step; resumed, it hits what nobody wrote.

    The model tells which rule breaks, not how to come there: the run is the shortest way to a victim that completed
    two blocks in the step, for the block that is freed first goes to `high` and loses its key.
    """
    config = Config(6, 1, 8, 2, 8, long_prefill_token_threshold=2)
    low = Request("low", (1, 2, 3, 4), 1, priority=1)
    high = Request("high", (9,), 2, priority=0)
    events: list[Event] = [Add(low, Script()), Add(high, Script()), *[StepEvent()] * 3]
    return Run("published-then-preempted", config, tuple(events), ("ORDER",))


class UnderPriority:
    """The spec's oracle with the running pass of a priority policy."""

    def __init__(self, modules: sources.Modules, config: Config, lawful: bool) -> None:
        self.oracle = modules.scheduler.Oracle(config, PROFILES[PROFILE])
        self.modules, self.lawful = modules, lawful
        self.add, self.commit = self.oracle.add, self.oracle.commit

    def schedule(self) -> Any:
        return self.modules.policies.schedule_under_priority(self.oracle.state, self.lawful)


Scheduler = Callable[[Config], Any]


def broken_scheduler(expected: Expected) -> Scheduler:
    """The running spec with the rule broken that the counterexample is about."""
    modules = expected.modules(symbolic=False)
    if expected is POLICY:
        return lambda config: UnderPriority(modules, config, lawful=False)
    quirks = frozenset({"accepts_unservable"} if expected is DEADLOCK else ())
    return lambda config: modules.scheduler.Oracle(config, Profile(PROFILE, quirks))


def lawful_scheduler(expected: Expected) -> Scheduler:
    """The running spec as it is, or the lawful variant of a policy."""
    modules = sources.load(symbolic=False)
    if expected is POLICY:
        return lambda config: UnderPriority(modules, config, lawful=True)
    return lambda config: modules.scheduler.Oracle(config, PROFILES[PROFILE])


RUNS: Sequence[tuple[Expected, Callable[[Failure], Run]]] = (
    (DEDUCTION, deduction),
    (DEADLOCK, deadlock),
    (POLICY, policy),
)


def run_of(expected: Expected) -> Run | None:
    """The run that a counterexample leads to, if it is one of those that do."""
    for each, build in RUNS:
        if each is expected and (failure := counterexamples.find(expected)) is not None:
            return build(failure)
    return None
