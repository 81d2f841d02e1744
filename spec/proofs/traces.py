"""Counterexamples of z3 as runs: the state of the model is reached by events, then the running spec takes the step.

A run is replayed on the same text that was refuted, with Python's own numbers, and judged by the laws.  `reaching`
makes runs of models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from spec import laws
from spec.events import Add, StepEvent
from spec.model import Script, answer
from spec.observer import Observer
from spec.proofs import reaching
from spec.proofs.cases import policing, progress
from spec.proofs.cases.case import Case
from spec.proofs.counterexamples import DEADLOCK, DEDUCTION, POLICY, UNCHARGED, Expected, find
from spec.proofs.proving import Failure
from spec.proofs.reaching import Run
from spec.proofs.symbols import sources
from spec.vocabulary import PROFILES, Config, Profile, Refused

PROFILE = "vllm-0.8.5"


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
    except Exception as error:
        return f"TOTAL: schedule raises {type(error).__name__}: {error}"
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


# --- who is driven through a run ------------------------------------------------------------------


class UnderPriority:
    """The spec's oracle with the running pass of a priority policy."""

    def __init__(self, modules: sources.Modules, config: Config, lawful: bool) -> None:
        self.oracle = modules.scheduler.Oracle(config, PROFILES[PROFILE])
        self.modules, self.lawful = modules, lawful
        self.add, self.commit = self.oracle.add, self.oracle.commit

    def schedule(self) -> Any:
        return self.modules.policies.schedule_under_priority(self.oracle.state, self.lawful)


class Replayable(NamedTuple):
    """A counterexample that can be replayed, and how.

    build    the run of its numbers
    case     the same situation for the text as it is, where the obligation must hold
    policy   whether a priority policy is driven, unlawful for the counterexample
    quirks   what lets the counterexample in at all
    """

    expected: Expected
    build: Callable[[Failure], Run]
    case: Case
    policy: bool = False
    quirks: frozenset[str] = frozenset()

    def broken(self, config: Config) -> Any:
        """The running spec with the rule broken that the counterexample is about."""
        modules = self.expected.modules(symbolic=False)
        if self.policy:
            return UnderPriority(modules, config, lawful=False)
        return modules.scheduler.Oracle(config, Profile(PROFILE, self.quirks))

    def as_it_is(self, config: Config) -> Any:
        """The running spec as it is, or the lawful variant of the policy."""
        modules = sources.load(symbolic=False)
        if self.policy:
            return UnderPriority(modules, config, lawful=True)
        return modules.scheduler.Oracle(config, PROFILES[PROFILE])


RUNS: tuple[Replayable, ...] = (
    Replayable(DEDUCTION, reaching.admission_behind_free_hits, DEDUCTION.case),
    Replayable(
        DEADLOCK,
        reaching.admission_when_idle,
        reaching.first_request(progress.idle()),
        quirks=frozenset({"accepts_unservable"}),
    ),
    Replayable(
        POLICY,
        reaching.grant_taken_back,
        reaching.taken_back(policing.case("preempt_scheduled_lawfully")),
        policy=True,
    ),
    Replayable(UNCHARGED, reaching.admission_of_two, UNCHARGED.case),
)


def run_of_failure(failure: Failure) -> tuple[Run, str] | None:
    """A run of the text as it is that shows a failed obligation, and what breaks in it, if there is one.

    The counterexample at hand is any state; for a run it is sought again among the states that a run reaches.
    """
    for each in RUNS:
        if each.case.name == failure.case and each.expected.obligation in failure.obligation:
            found = find(replace(each.expected, case=each.case, change=None))
            run = None if found is None else each.build(found)
            if run is not None and (breach := replay(run, each.as_it_is(run.config))):
                return run, breach
    return None
