"""Hypothesis: a state machine over configurations and events, for diversity and for short failures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from conformance.generate import MOST_LIVE, Author, can_happen, draw_config
from conformance.lockstep import Ended, Failure, Judge, Session
from conformance.protocol import Implementation
from conformance.record import save
from conformance.walk import FailedRun, Tally, finish
from spec.events import Add, Event, StepEvent
from spec.moves import Move, event

SHARDS = range(4)
EXAMPLES_PER_SHARD = 30
RULES_PER_EXAMPLE = 50


class FromHypothesis:
    """Choices drawn by Hypothesis, which then makes them simpler."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))


class Scheduling(RuleBasedStateMachine):
    """Drives one implementation in lockstep with the spec; `machine` says which."""

    implementation: Implementation
    judge: Judge
    tally: Tally
    session: Session
    author: Author
    over = False

    @initialize(data=st.data())
    def configure(self, data: st.DataObject) -> None:
        config = draw_config(FromHypothesis(data), self.implementation.capabilities)
        self.author = Author(config, self.implementation.capabilities)
        try:
            self.session = Session(self.implementation, config, self.judge)
        except Failure as failure:
            raise FailedRun(failure, config, []) from failure

    def apply(self, event: Event) -> None:
        try:
            self.session.apply(event)
        except Ended:
            self.over = True
        except Failure as failure:
            self.over = True
            raise FailedRun(failure, self.session.config, self.session.events) from failure

    def targets(self, kind: str) -> Sequence[str]:
        """Whom an event of this kind can concern now."""
        if self.over:
            return ()
        return can_happen(self.session.observer, self.implementation.capabilities).get(kind, ())

    @precondition(lambda self: self.targets("add"))
    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        self.apply(self.author.draw_request(FromHypothesis(data)))

    @rule(steps=st.integers(1, 6))
    def step(self, steps: int) -> None:
        """Always possible, so that a run that a known deviation ended is not an error of the machine."""
        for _ in range(steps):
            if not self.over:
                self.apply(StepEvent())

    @precondition(lambda self: self.targets("abort anyone"))
    @rule(which=st.integers(0, MOST_LIVE))
    def abort(self, which: int) -> None:
        self.happen("abort anyone", which)

    @precondition(lambda self: self.targets("grammar ready"))
    @rule(which=st.integers(0, MOST_LIVE - 1))
    def grammar_ready(self, which: int) -> None:
        self.happen("grammar ready", which)

    @precondition(lambda self: self.targets("reset"))
    @rule()
    def reset(self) -> None:
        self.happen("reset", 0)

    def happen(self, kind: str, which: int) -> None:
        targets = self.targets(kind)
        self.apply(event(Move(kind, targets[which % len(targets)]), _nobody_comes))

    def teardown(self) -> None:
        """Everything that is live ends, and nothing is left behind."""
        try:
            if not self.over:
                finish(self.session)
        except Ended:
            pass
        except Failure as failure:
            raise FailedRun(failure, self.session.config, self.session.events) from failure
        finally:
            self.tally.count(self.session)


def machine(implementation: Implementation, judge: Judge, tally: Tally) -> type[Scheduling]:
    """The state machine for one implementation."""
    return type("Scheduling", (Scheduling,), {"implementation": implementation, "judge": judge, "tally": tally})


def _nobody_comes(target: str) -> Add:
    raise AssertionError(f"{target} is not to come")


@pytest.mark.parametrize("shard", SHARDS)
def test_machine(shard: int, implementation: Implementation, judge: Judge, tally: Tally, failures: Path) -> None:
    """Draws depend on test and shard only, whatever the number of workers."""
    drawn = seed(f"test_machine {shard}")(machine(implementation, judge, tally))
    try:
        run_state_machine_as_test(
            drawn,
            settings=settings(
                max_examples=EXAMPLES_PER_SHARD,
                stateful_step_count=RULES_PER_EXAMPLE,
                database=None,
                deadline=None,
                print_blob=False,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            ),
        )
    except FailedRun as failed:
        path = save(implementation, judge, failed, failures)
        pytest.fail(f"{failed.failure}\n{failed.failure.sides}\nwritten to {path}", pytrace=False)
