"""The waiting pass: who is set aside, who is admitted, and what ends the admissions of a step."""

from __future__ import annotations

from typing import Any

import pytest

from spec.allocation import Step
from spec.lifecycle import release_table
from spec.prefix import longest_hit
from spec.scheduler import schedule
from spec.state import State
from spec.tests.build import DRAFTS, ENCODER, admitted, names, new, request, resumed, sample, snapshot, state
from spec.vocabulary import EncoderItem, Status
from spec.waiting import admit_one, demand_of_waiting, examine_one

TEXT = tuple(range(1, 10))


def step_with(built: State, **left: Any) -> Step:
    """A step that has this left of its budgets, or these adapters in use."""
    step = Step(built.config)
    for name, value in left.items():
        setattr(step, name, value)
    return step


# --- set aside -----------------------------------------------------------------------------------


def test_requests_set_aside_do_not_hold_up_those_behind() -> None:
    """Adapters 1, 2, 3, 1, none, 2 with a cap of one."""
    adapters = (1, 2, 3, 1, 0, 2)
    built = state(*(request(f"r{i}", lora_id=adapter) for i, adapter in enumerate(adapters)), max_loras=1)
    step = schedule(built)
    assert [entry.request_id for entry in step.grants] == ["r0", "r3", "r4"]
    assert names(list(built.waiting)) == ["r1", "r2", "r5"]


@pytest.mark.parametrize("changes", [{"needs_grammar": True}, {"lora_id": 2}], ids=["grammar", "adapter"])
def test_a_request_set_aside_is_as_it_was(changes: dict[str, Any]) -> None:
    built = state(request("a", **changes), request("b"), max_loras=1)
    before = snapshot(built)
    step = step_with(built, adapters={1})
    assert not examine_one(built, step)
    assert names(step.skipped) == ["a"]
    built.waiting.extendleft(step.skipped)
    assert snapshot(built) == before


def test_a_step_that_only_sets_aside_changes_nothing() -> None:
    built = state(*(request(name, needs_grammar=True) for name in "abc"))
    before = snapshot(built)
    assert schedule(built).grants == ()
    assert snapshot(built) == before


def test_a_ready_grammar_is_noticed_at_the_front() -> None:
    built = state(request("a", needs_grammar=True))
    built.live["a"].grammar_ready = True
    assert examine_one(built, Step(built.config))
    assert built.live["a"].status is Status.WAITING


def test_a_request_whose_adapter_is_in_use_is_examined() -> None:
    built = state(request("a", lora_id=1), max_loras=1)
    step = step_with(built, adapters={1})
    assert examine_one(built, step)


# --- the demand ----------------------------------------------------------------------------------


def behind_a_twin(asking: Any, **changes: Any) -> State:
    """The request waits; one with the prompt 1..9 ran before it, and its first two blocks are hittable."""
    built = admitted(request("a", TEXT), **changes)
    release_table(built, built.running.pop())
    built.live = dict(state(asking, **changes).live)
    built.waiting.extend(built.live.values())
    return built


Demand = tuple[int, int, int, int]

DEMANDS: tuple[tuple[str, dict[str, Any], dict[str, Any], dict[str, int], Demand], ...] = (
    ("nothing known of it", {"prompt": 9}, {}, {}, (0, 9, 0, 3)),
    ("behind its hits", {"prompt": TEXT}, {}, {}, (8, 1, 0, 1)),
    ("external tokens behind the hits", {"prompt": (*TEXT, 1, 2), "external_tokens": 10}, {}, {}, (10, 1, 2, 1)),
    ("external tokens all hit", {"prompt": (*TEXT, 1, 2), "external_tokens": 5}, {}, {}, (8, 3, 0, 1)),
    ("external tokens alone", {"prompt": 9, "external_tokens": 6}, {}, {}, (6, 3, 6, 3)),
    ("the threshold", {"prompt": 9}, {"long_prefill_token_threshold": 4}, {}, (0, 4, 0, 1)),
    ("the budget", {"prompt": 9}, {}, {"budget": 5}, (0, 5, 0, 2)),
    ("the threshold below the budget", {"prompt": 9}, {"long_prefill_token_threshold": 4}, {"budget": 5}, (0, 4, 0, 1)),
    ("an item", {"prompt": 9, "items": (EncoderItem(6, 2, 7),)}, {}, {"encoder_budget": 1}, (0, 6, 0, 2)),
)


@pytest.mark.parametrize(
    ("asking", "changes", "left", "demand"), [row[1:] for row in DEMANDS], ids=[row[0] for row in DEMANDS]
)
def test_what_a_waiting_request_asks_for(
    asking: dict[str, Any], changes: dict[str, Any], left: dict[str, int], demand: Demand
) -> None:
    """The demand is (computed, tokens, external, blocks needed); `left` is what the step has left."""
    built = behind_a_twin(request("b", **asking), use_connector=True, **ENCODER, **changes)
    made = demand_of_waiting(built, step_with(built, **left), built.waiting[0])
    assert (made.computed, made.tokens, made.external, made.needed) == demand


def test_drafts_of_a_resumed_request_wait() -> None:
    built = state(request("a", 5), **DRAFTS)
    built.live["a"].drafts = (8, 9)
    assert demand_of_waiting(built, Step(built.config), built.waiting[0]).tokens == 5


# --- admission -----------------------------------------------------------------------------------


def test_an_admitted_request_runs() -> None:
    built = behind_a_twin(request("b", TEXT))
    step = Step(built.config)
    assert admit_one(built, step) is None
    assert step.grants == [new("b", 8, 1, (1, 2, 4))]
    assert (names(built.running), built.live["b"].status, built.live["b"].computed) == (["b"], Status.RUNNING, 8)


def test_a_preempted_request_is_resumed() -> None:
    built = state(request("a", 4))
    built.live["a"].status = Status.PREEMPTED
    step = Step(built.config)
    assert admit_one(built, step) is None
    assert step.grants == [resumed("a", 0, 4, (1,))]


def test_an_admission_uses_its_adapter_from_now_on() -> None:
    built = state(request("a", lora_id=1), request("b"), max_loras=1)
    step = Step(built.config)
    admit_one(built, step)
    admit_one(built, step)
    assert step.adapters == {1}


REFUSED: tuple[tuple[str, dict[str, Any], dict[str, Any], str, tuple[str, str]], ...] = (
    ("the pool", {"prompt": 9}, {}, "pool: needs 3 blocks, 2 free", ("admit", "pool")),
    (
        "the pool, but for its free hits",
        {"prompt": TEXT},
        {},
        "pool: needs 1 blocks, 2 free, 2 of which are hits",
        ("admit", "pool, but for its free hits"),
    ),
    (
        "an encoder item",
        {"prompt": 9, "items": (EncoderItem(0, 4, 7),)},
        {"encoder_budget": 3},
        "tokens: none left to schedule before an encoder item",
        ("admit", "nothing to compute"),
    ),
)


@pytest.mark.parametrize(
    ("asking", "left", "reason", "outcome"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_refused_admission_changes_nothing(
    asking: dict[str, Any], left: dict[str, Any], reason: str, outcome: tuple[str, str]
) -> None:
    """Two blocks are free, both hits for the same text; the keys were worked out in an earlier attempt (HASH-4)."""
    built = behind_a_twin(request("b", **asking), **ENCODER)
    for block in list(built.pool.free)[:6]:
        del built.pool.free[block]
        built.pool.refs[block] = 1
    longest_hit(built, built.waiting[0])
    step = step_with(built, **left)
    before = snapshot(built)
    refusal = admit_one(built, step)
    assert refusal is not None
    assert (refusal.reason, built.log[-1]) == (reason, outcome)
    assert snapshot(built) == before
    assert not step.grants


def test_the_pool_ends_the_admissions_and_nobody_is_preempted_for_it() -> None:
    built = admitted(request("a", 4), num_blocks=4)
    sample(built, "a", 7)
    built.waiting.extend(state(request("b", 8), request("c", 1)).waiting)
    step = schedule(built)
    assert [entry.request_id for entry in step.grants] == ["a"]
    assert step.preempted == ()
    assert names(list(built.waiting)) == ["b", "c"]


def test_an_item_that_nothing_comes_before_ends_the_admissions() -> None:
    items = (EncoderItem(0, 5, 7),)
    built = state(request("a", 5, items=items), request("b", 5, items=items), request("c", 1), **ENCODER)
    assert [entry.request_id for entry in schedule(built).grants] == ["a"]


def test_seats_and_budget_end_the_admissions() -> None:
    seats = state(request("a"), request("b"), max_num_seqs=1)
    assert [entry.request_id for entry in schedule(seats).grants] == ["a"]
    budget = state(request("a", 8), request("b"), max_num_batched_tokens=8)
    assert [entry.request_id for entry in schedule(budget).grants] == ["a"]
