"""What the spec counts wrong is found after every event, and is not held against the implementation."""

from __future__ import annotations

import pytest

from conformance.adapters import reference
from conformance.lockstep import SMALL_POOL_BLOCKS, Failure, Judge, Level, Session
from conformance.report import sentence
from spec.events import Abort, Add, Event, GrammarReady, Reset, StepEvent
from spec.model import Script
from spec.recount import ID, SENTENCE
from spec.vocabulary import PROFILES, Config, ModelOutput, Request, StepPlan, StepResult

PROFILE = PROFILES["vllm-0.8.5"]
EVENTS: tuple[Event, ...] = (
    Add(Request("b", (1, 2, 3), 2), Script((4, 5))),
    Abort("nobody"),
    GrammarReady("nobody"),
    Reset(),
    StepEvent(),
)


def session(num_blocks: int = 9, level: Level = Level.IDENTICAL) -> Session:
    """One in which a request runs."""
    made = Session(reference.IMPLEMENTATION, Config(num_blocks, 4, 16, 4, 16), Judge(PROFILE, level))
    made.apply(Add(Request("a", tuple(range(6)), 8), Script(range(4, 12))))
    made.apply(StepEvent())
    return made


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_count_that_is_off_is_found_after_every_event(event: Event) -> None:
    run = session()
    run.oracle.state.pool.holders[10**6] = {}
    with pytest.raises(Failure) as failed:
        run.apply(event)
    assert failed.value.violation[:2] == (ID, "KEY")


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_where_the_spec_does_not_run_it_counts_nothing(event: Event) -> None:
    run = session(level=Level.LAWFUL)
    run.oracle.state.pool.holders[10**6] = {}
    run.apply(event)


@pytest.mark.parametrize("num_blocks", [9, 2 * SMALL_POOL_BLOCKS], ids=["small pool", "large pool"])
def test_a_block_that_was_taken_is_counted_at_once(num_blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run = session(num_blocks)
    commit = run.oracle.commit

    def forgets_that_it_is_taken(plan: StepPlan, output: ModelOutput) -> StepResult:
        for grant in plan.grants:
            run.oracle.state.pool.free.update(dict.fromkeys(grant.blocks))
        return commit(plan, output)

    monkeypatch.setattr(run.oracle, "commit", forgets_that_it_is_taken)
    for _ in range(2):
        run.apply(StepEvent())  # in the last slots of the blocks that it has
    with pytest.raises(Failure) as failed:
        run.apply(StepEvent())
    assert failed.value.violation[:2] == (ID, "PARTITION")
    assert sentence(failed.value.violation.law) == SENTENCE


def test_a_spec_that_raises_is_not_held_against_the_implementation(monkeypatch: pytest.MonkeyPatch) -> None:
    run = session()
    monkeypatch.setattr(run.oracle, "schedule", lambda: run.oracle.state.pool.refs[10**6])
    with pytest.raises(Failure) as failed:
        run.apply(StepEvent())
    assert failed.value.violation[:2] == (ID, "raises")
    assert "the spec raises IndexError" in failed.value.violation.message
