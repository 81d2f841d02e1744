"""The running pass: who is visited, what cuts a demand, who is preempted."""

from __future__ import annotations

from typing import Any

import pytest

from spec.allocation import Step
from spec.running import VISIT, demand_of_running, preempt_one, visit_one_running
from spec.state import State
from spec.tests.build import DRAFTS, ENCODER, admitted, names, request, sample, snapshot
from spec.vocabulary import EncoderItem, Status


def visit_all(built: State) -> Step:
    step = Step(built.config)
    while VISIT.refusal((built, step)) is None:
        visit_one_running(built, step)
    return step


def decoding(*prompts: int, **changes: Any) -> State:
    """Requests a, b, ... that run and have said one token each."""
    built = admitted(*(request(name, prompt) for name, prompt in zip("abc", prompts, strict=False)), **changes)
    for name in built.live:
        sample(built, name, 7)
    return built


def test_requests_are_visited_in_the_order_of_their_admission() -> None:
    assert [entry.request_id for entry in visit_all(decoding(2, 2, 2)).grants] == ["a", "b", "c"]


def test_the_pass_ends_with_the_budget() -> None:
    built = decoding(2, 2)
    step = Step(built.config)
    step.budget = 1
    visit_one_running(built, step)
    assert (step.index, step.budget) == (1, 0)
    assert VISIT.refusal((built, step)) is not None


# --- the demand --------------------------------------------------------------------------------


CUTS: tuple[tuple[str, dict[str, Any], int, int, int, list[tuple[str, str]]], ...] = (
    ("all that is known", {}, 0, 64, 6, []),
    ("drafts too", DRAFTS, 2, 64, 8, []),
    ("the threshold", {"long_prefill_token_threshold": 4}, 0, 64, 4, [("cut running", "threshold")]),
    ("the budget", {}, 0, 5, 5, [("cut running", "budget")]),
    ("the model length", {"max_model_len": 7, **DRAFTS}, 2, 64, 7, [("cut running", "model length")]),
    (
        "threshold, then budget",
        {"long_prefill_token_threshold": 4},
        0,
        3,
        3,
        [("cut running", "threshold"), ("cut running", "budget")],
    ),
)


@pytest.mark.parametrize(
    ("changes", "drafts", "budget", "tokens", "log"), [row[1:] for row in CUTS], ids=[row[0] for row in CUTS]
)
def test_what_cuts_a_demand(
    changes: dict[str, Any], drafts: int, budget: int, tokens: int, log: list[tuple[str, str]]
) -> None:
    built = admitted(request("a", 5), **changes)
    live = sample(built, "a", 7)
    live.computed, live.drafts = 0, (8,) * drafts
    step = Step(built.config)
    step.budget = budget
    before = snapshot(built)
    assert demand_of_running(built, step, live).tokens == tokens
    assert built.log == log
    assert snapshot(built) == before


# --- nothing to compute --------------------------------------------------------------------------


def test_a_request_that_can_compute_nothing_keeps_its_seat() -> None:
    built = admitted(request("a"), request("b"))
    sample(built, "b", 7)
    step = visit_all(built)
    assert [entry.request_id for entry in step.grants] == ["b"]
    assert names(built.running) == ["a", "b"]
    assert built.live["a"].computed == 4
    assert ("visit", "nothing to compute") in built.log


def test_a_visit_that_computes_nothing_changes_nothing() -> None:
    built = admitted(request("a", 8, items=(EncoderItem(0, 4, 7),)), **ENCODER)
    live = built.live["a"]
    live.computed, live.cached, built.encoder_free = 0, set(), 3
    before = snapshot(built)
    step = visit_all(built)
    assert not step.grants
    assert snapshot(built) == before


# --- preemption ----------------------------------------------------------------------------------


def test_the_newest_is_preempted_for_an_older_one() -> None:
    step = visit_all(built := decoding(4, 4, 4, num_blocks=4))
    assert step.preempted == ["c", "b"]
    assert [(entry.request_id, entry.blocks) for entry in step.grants] == [("a", (3,))]
    assert (names(built.running), names(list(built.waiting))) == (["a"], ["b", "c"])


def test_no_more_are_preempted_than_needed() -> None:
    step = visit_all(decoding(4, 2, 4, num_blocks=4))
    assert step.preempted == ["c"]
    assert [entry.request_id for entry in step.grants] == ["a", "b"]


def test_the_last_one_preempts_itself() -> None:
    step = visit_all(built := decoding(2, 4, num_blocks=3))
    assert step.preempted == ["b"]
    assert [entry.request_id for entry in step.grants] == ["a"]
    assert ("visit", "preempted itself") in built.log


def test_the_tokens_stay_as_they_were_cut() -> None:
    built = decoding(4, 4, num_blocks=3)
    step = Step(built.config)
    step.budget = 1
    visit_one_running(built, step)
    assert [(entry.tokens, step.preempted) for entry in step.grants] == [(1, ["b"])]


def test_a_victim_gives_back_everything_but_its_words_and_drafts() -> None:
    built = admitted(request("a", 6, items=(EncoderItem(1, 4, 7),)), **ENCODER, **DRAFTS)
    live = sample(built, "a", 7)
    live.drafts = (8,)
    assert preempt_one(built, Step(built.config)) is live
    assert (live.status, live.computed, live.table, live.published, live.cached) == (
        Status.PREEMPTED,
        0,
        [],
        0,
        set(),
    )
    assert (live.known, live.drafts) == (7, (8,))
    assert (len(built.pool.free), built.encoder_free, built.freed) == (8, 8, [("a", 0)])


def test_a_victim_keeps_its_keys() -> None:
    built = decoding(8)
    keys = list(built.live["a"].keys)
    preempt_one(built, Step(built.config))
    assert keys
    assert built.live["a"].keys == keys


def test_a_victim_that_shares_its_blocks_frees_none_of_them() -> None:
    built = admitted(request("a", range(1, 6)), request("b", range(1, 6)))
    assert built.live["b"].table[0] == built.live["a"].table[0] == 1
    preempt_one(built, Step(built.config))
    assert built.pool.refs[1] == 1
    assert list(built.pool.free) == [4, 5, 6, 7, 8, 3]
