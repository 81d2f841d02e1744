"""Lockstep: the spec and an implementation side by side, judged after every event.

A `Session` applies one event at a time to both.  What breaks a law, or departs from the spec in the class asked
for, raises `Failure` with both sides; a known deviation is counted, and ends the session where the two
cannot go on together (`Ended`).
"""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from conformance import answers
from conformance.compare import Renaming, compare_inside, compare_plans, compare_results
from conformance.deviations import NONE, Deviation, KnownDeviations
from conformance.protocol import Implementation
from spec import laws, recount
from spec.events import Abort, Add, Event, GrammarReady, Reset, StepEvent
from spec.laws import Violation
from spec.model import Script, answer
from spec.observer import Observer, StepSeen
from spec.scheduler import Oracle
from spec.vocabulary import Config, ModelOutput, Profile, Refused, StepPlan, StepResult

T = TypeVar("T")

SMALL_POOL_BLOCKS = 256
"""Up to this size everything inside is looked at after every step; above it, what the step touched."""

STEPS_BETWEEN_LOOKS = 1_000
"""In a larger pool, steps from one look at everything to the next."""


class Level(StrEnum):
    """The classes of conformance, each stronger than the one before."""

    LAWFUL = "lawful"
    EQUIVALENT = "equivalent"
    IDENTICAL = "identical"


@dataclass(frozen=True)
class Judge:
    """Against what a session judges."""

    profile: Profile
    level: Level = Level.IDENTICAL
    known: KnownDeviations = NONE
    time_limit_s: float = 60.0


class Failure(Exception):
    """A violation that is not a known deviation, with both sides of the step in which it showed."""

    def __init__(self, violation: Violation, event_number: int, sides: str) -> None:
        super().__init__(str(violation))
        self.violation = violation
        self.event_number = event_number
        self.sides = sides


class Ended(Exception):
    """A known deviation after which spec and implementation cannot go on together."""

    def __init__(self, deviation: Deviation) -> None:
        super().__init__(deviation.id)
        self.deviation = deviation


class Session:
    """One scheduler from its making to the end of a run.

    events   what was applied so far, in order; left empty with `record` off, for runs that are too long to keep
    applied  how many events were applied
    reached  (action, outcome) of the spec's micro-steps, with how often
    shown    ids of known deviations that showed, with how often
    """

    def __init__(self, implementation: Implementation, config: Config, judge: Judge, *, record: bool = True) -> None:
        self.config = config
        self.judge = judge
        self.observer = Observer(config)
        self.oracle = Oracle(config, judge.known.profile(judge.profile))
        self.scripts: dict[str, Script] = {}
        self.record = record
        self.events: list[Event] = []
        self.applied = 0
        self.reached: Counter[tuple[str, str]] = Counter()
        self.shown: Counter[str] = Counter()
        self.renaming = Renaming() if judge.level is Level.EQUIVALENT else None
        self.steps = 0
        self.last_plan: StepPlan | None = None
        self.last_spec_plan: StepPlan | None = None
        try:
            self.scheduler = answers.make(implementation.factory, config, judge.time_limit_s)
        except answers.BrokenAnswer as broken:
            self._judge([broken.violation], can_follow=False)
            raise

    @property
    def quirks(self) -> frozenset[str]:
        """The quirks with which the oracle follows the release under test."""
        return self.oracle.state.profile.quirks

    @property
    def small(self) -> bool:
        """Whether everything inside can be looked at after every event."""
        return self.config.num_blocks <= SMALL_POOL_BLOCKS

    @property
    def compares(self) -> bool:
        return self.judge.level is not Level.LAWFUL

    def apply(self, event: Event) -> None:
        """Raises Failure, or Ended at a known deviation that cannot be followed."""
        self.applied += 1
        if self.record:
            self.events.append(event)
        self.oracle.state.log.clear()
        try:
            match event:
                case Add():
                    self._add(event)
                case Abort(request_id):
                    if self.compares:
                        self._of_spec(self.oracle.abort, request_id)
                    self.scheduler.abort(request_id)
                    self.observer.abort(request_id)
                    self._look()
                case GrammarReady(request_id):
                    if self.compares:
                        self._of_spec(self.oracle.grammar_ready, request_id)
                    self.scheduler.grammar_ready(request_id)
                    self.observer.grammar_ready(request_id)
                    self._recount(None if self.small else (), (request_id,))
                case Reset():
                    self._reset()
                case StepEvent():
                    self._step()
        except answers.BrokenAnswer as broken:
            self._judge([broken.violation], can_follow=False)
        finally:
            self.reached.update(self.oracle.state.log)

    def _of_spec(self, ask: Callable[..., T], *arguments: object) -> T:
        """What the spec answers.  What it raises is its own fault, but for Refused, which is an answer."""
        try:
            return ask(*arguments)
        except Refused:
            raise
        except Exception as error:
            raise Failure(_own_fault(error), self.applied, self.sides()) from error

    # --- events ----------------------------------------------------------------------------------

    def _add(self, event: Add) -> None:
        request = event.request
        unlawful = laws.check_add(self.observer, request)
        if self.compares:
            with contextlib.suppress(Refused):
                self._of_spec(self.oracle.add, request)
            self._recount(None if self.small else (), (request.request_id,))
        refusal = self.scheduler.add(request)
        if refusal is None:
            self._judge(unlawful)
            self.observer.add(request)
            self.scripts[request.request_id] = event.script
        elif not unlawful:
            message = f"add() refused {request.request_id}, which is new and fits alone: {refusal}"
            self._judge([Violation("ANSWER", "refused", message)], can_follow=False)

    def _reset(self) -> None:
        found = self.scheduler.reset_prefix_cache()
        if self.compares and found != (expected := self._of_spec(self.oracle.reset_prefix_cache)):
            said = f"spec {'resets' if expected else 'refuses'}, found {'reset' if found else 'refusal'}"
            self._judge([Violation("RESET-1", "reset", said)])
        self._look()

    def _step(self) -> None:
        self.steps += 1
        self.last_plan = self.last_spec_plan = spec_plan = None
        if self.compares:
            self.last_spec_plan = spec_plan = self._of_spec(self.oracle.schedule)
        self.last_plan = plan = self.scheduler.schedule()
        self._judge(laws.check_plan(self.observer, plan), can_follow=False)
        step = self.observer.apply(plan)
        self._judge(laws.check_step(self.observer, step))
        if spec_plan is not None and (plan != spec_plan or self.renaming is not None):
            self._judge(compare_plans(spec_plan, plan, self.renaming, self.config.block_size))
        output = self.answer(step)
        spec_result = None if spec_plan is None else self._of_spec(self.oracle.commit, spec_plan, output)
        self._settle(step, output, spec_result, self.scheduler.commit(plan, output))
        self._look(touched_blocks(step, self.config.block_size), [grant.request_id for grant in plan.grants])

    def answer(self, step: StepSeen) -> ModelOutput:
        """What the model says to a plan that was followed; where there are tensors, it is carried out here."""
        return answer(self.config, self.observer, self.scripts, step.plan)

    def _settle(self, step: StepSeen, output: ModelOutput, due: StepResult | None, found: StepResult) -> None:
        self._judge(laws.check_answer(self.observer, step, found), can_follow=False)
        self._judge(laws.check_result(self.observer, self.observer.settle(step, output, found)))
        if due is not None and due != found:
            self._judge(compare_results(due, found))

    def look_inside(self, touched: Sequence[int] | None = None) -> None:
        """Judges what the implementation shows: everything, or what belongs to the touched blocks."""
        inspection = self.scheduler.inspect(touched)
        if inspection is None:
            return
        self._judge(laws.check_inspection(self.observer, inspection))
        if self.judge.level is Level.IDENTICAL:
            self._judge(compare_inside(self.oracle.state, inspection))

    def _look(self, blocks: Sequence[int] = (), requests: Sequence[str] = ()) -> None:
        """Judges both insides after an event that touched these blocks and requests."""
        whole = self.small or self.steps % STEPS_BETWEEN_LOOKS == 0
        self._recount(None if whole else blocks, requests)
        self.look_inside(None if whole else blocks)

    def _recount(self, blocks: Sequence[int] | None, requests: Sequence[str]) -> None:
        """Judges the spec's own counts, where it runs."""
        if self.compares:
            self._judge(recount.recount(self.oracle.state, blocks, requests))

    # --- judgement -------------------------------------------------------------------------------

    def _judge(self, violations: Iterable[Violation], *, can_follow: bool = True) -> None:
        """Raises Failure at the first violation that is not listed; counts those that are."""
        for violation in violations:
            deviation = self.judge.known.match(violation, self._happened)
            if deviation is None:
                raise Failure(violation, self.applied, self.sides())
            self.shown[deviation.id] += 1
            if deviation.ends or not can_follow:
                raise Ended(deviation)

    def _happened(self, what: str) -> bool:
        """Whether an outcome or a deviation occurred in this run; taken for granted where the spec does not run."""
        if not self.compares:
            return True
        action, _, outcome = what.partition(": ")
        row = (action, outcome)
        return self.shown[what] > 0 or self.reached[row] > 0 or row in self.oracle.state.log

    def sides(self) -> str:
        """The last step of both sides, and the way the spec took through its guards."""
        way = " · ".join(f"{action}: {outcome}" for action, outcome in self.oracle.state.log)
        return "\n".join(
            [
                "spec:",
                *_plan_lines(self.last_spec_plan),
                "implementation:",
                *_plan_lines(self.last_plan),
                f"the spec's way: {way}",
            ]
        )


def _own_fault(error: Exception) -> Violation:
    """The spec raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return Violation(recount.ID, "raises", f"the spec raises {type(error).__name__}: {error} ({where})")


def touched_blocks(step: StepSeen, block_size: int) -> list[int]:
    """Blocks that were handed out or completed in a step."""
    touched: list[int] = []
    for grant, seen, _, _, _, end in step.rows:
        touched.extend(grant.blocks)
        first, last = grant.start // block_size, end // block_size
        if first < last:
            touched.extend(seen.table[first:last])
    return touched


def _plan_lines(plan: StepPlan | None) -> list[str]:
    if plan is None:
        return ["  (no plan)"]
    lines = []
    for grant in plan.grants:
        extras = "".join(
            f" {name} {value}"
            for name, value in (("drafts", grant.drafts), ("items", grant.items), ("external", grant.external))
            if value
        )
        end = grant.start + grant.tokens
        lines.append(
            f"  {grant.request_id} {grant.admission}: {grant.start}..{end} blocks {list(grant.blocks)}{extras}"
        )
    for name in ("preempted", "finished", "freed_items"):
        if getattr(plan, name):
            lines.append(f"  {name}: {list(getattr(plan, name))}")
    return lines or ["  (nothing scheduled)"]
