"""The observer follows plans and results, and decides nothing."""

from __future__ import annotations

from typing import Any

import pytest

from spec.observer import Ending, Observer
from spec.shadow import NOTHING
from spec.tests.build import DRAFTS, ENCODER, config, grant, new, plan, request, resumed
from spec.vocabulary import EncoderItem, Finish, FinishReason, ModelOutput, Request, Status, StepPlan, StepResult

STOP, LENGTH = FinishReason.STOP, FinishReason.LENGTH


def watching(*requests: Request, plans: tuple[StepPlan, ...] = (), **changes: Any) -> Observer:
    observer = Observer(config(**changes))
    for each in requests:
        observer.add(each)
    for each_plan in plans:
        observer.apply(each_plan)
    return observer


def waiting_ids(observer: Observer) -> list[str]:
    return [seen.request.request_id for seen in observer.waiting]


# --- tables and holders --------------------------------------------------------------------------


def test_a_table_is_the_blocks_of_all_grants() -> None:
    observer = watching(request("a", 8), plans=(plan(new("a", 0, 4, [3])), plan(grant("a", 4, 4, [5]))))
    assert observer.live["a"].table == [3, 5]
    assert observer.live["a"].computed == 8
    assert observer.holders == {3: 1, 5: 1}


def test_a_hit_adds_a_holder_and_is_no_new_block() -> None:
    twins = (request("a", range(9)), request("b", range(9)))
    observer = watching(*twins, plans=(plan(new("a", 0, 9, [1, 2, 3])),))
    step = observer.apply(plan(new("b", 8, 1, [1, 2, 4])))
    assert observer.holders == {1: 2, 2: 2, 3: 1, 4: 1}
    assert (step.handed_out_twice, observer.live["b"].adopted) == ([], 2)


def test_a_new_block_that_somebody_holds_is_noticed() -> None:
    observer = watching(request("a"), request("b"), plans=(plan(new("a", 0, 4, [1])),))
    assert observer.apply(plan(new("b", 0, 4, [1]))).handed_out_twice == [("b", 1)]


def test_a_write_into_a_shared_block_is_noticed() -> None:
    twins = (request("a", range(4)), request("b", range(4)))
    observer = watching(*twins, plans=(plan(new("a", 0, 4, [1])),))
    assert observer.apply(plan(new("b", 2, 2, [1]))).shared_writes == [("b", 1)]


@pytest.mark.parametrize("end", ["abort", "finish", "preempt"])
def test_blocks_are_held_by_nobody_once_their_request_is_gone(end: str) -> None:
    observer = watching(request("a"))
    step = observer.apply(plan(new("a", 0, 4, [1])))
    if end == "abort":
        observer.abort("a")
    elif end == "preempt":
        observer.apply(plan(preempted=("a",)))
    else:
        observer.settle(step, ModelOutput({"a": (0,)}), StepResult((("a", (0,)),), (Finish("a", STOP),)))
    assert observer.holders == {}


# --- queues --------------------------------------------------------------------------------------


def test_a_preempted_request_waits_at_the_front_with_nothing_computed() -> None:
    observer = watching(request("a"), request("b"), plans=(plan(new("a", 0, 4, [1])), plan(preempted=("a",))))
    seen = observer.live["a"]
    assert waiting_ids(observer) == ["a", "b"]
    assert (seen.status, seen.computed, seen.high_water, seen.table) == (Status.PREEMPTED, 0, 4, [])


def test_an_admission_past_others_is_noticed_and_leaves_them_in_place() -> None:
    observer = watching(*(request(name) for name in "abc"))
    step = observer.apply(plan(new("c", 0, 4, [1])))
    assert [passed.passed.request.request_id for passed in step.overtakings] == ["a", "b"]
    assert waiting_ids(observer) == ["a", "b"]


def test_adapters_in_use_are_those_of_running_requests() -> None:
    asking = (request("a", lora_id=1), request("b"), request("c", lora_id=2))
    observer = watching(*asking, plans=(plan(new("a", 0, 4, [1]), new("b", 0, 4, [2])),), max_loras=2)
    assert observer.adapters_in_use() == {1}


def test_ids_that_ended_belong_to_the_next_plan_only() -> None:
    observer = watching(request("a"))
    observer.abort("a")
    observer.abort("nobody")
    assert observer.apply(plan(finished=("a",))).ended == ["a"]
    assert observer.apply(plan()).ended == []


def test_a_grammar_is_ready_when_it_is_told() -> None:
    observer = watching(request("a", needs_grammar=True))
    assert not observer.live["a"].grammar_ready
    observer.grammar_ready("a")
    observer.grammar_ready("nobody")
    assert observer.live["a"].grammar_ready


# --- shadow memory -------------------------------------------------------------------------------


def test_a_block_is_written_with_its_last_slot() -> None:
    observer = watching(request("a", 8), plans=(plan(new("a", 0, 7, [1, 2])),))
    assert observer.shadow.read(1) == observer.live["a"].content(0, 4, 8)
    assert observer.shadow.read(2) == NOTHING
    observer.apply(plan(grant("a", 7, 1)))
    assert observer.shadow.read(2) == observer.live["a"].content(1, 4, 8)


def test_a_block_that_is_handed_out_anew_holds_nothing() -> None:
    observer = watching(request("a"), request("b"), plans=(plan(new("a", 0, 4, [1])),))
    observer.abort("a")
    observer.apply(plan(new("b", 0, 2, [1])))
    assert observer.shadow.read(1) == NOTHING


def test_external_tokens_are_written_too() -> None:
    observer = watching(request("a", 5), plans=(plan(new("a", 4, 1, [1, 2], external=4)),), use_connector=True)
    assert observer.shadow.read(1) == observer.live["a"].content(0, 4, 5)


def test_a_rejected_draft_is_not_part_of_the_content() -> None:
    observer = watching(request("a", 3, 9), **DRAFTS)
    step = observer.apply(plan(new("a", 0, 3, [1, 2])))
    observer.settle(step, ModelOutput({"a": (7,)}), StepResult((("a", (7,)),), ()))
    step = observer.apply(plan(grant("a", 3, 3, drafts=(8, 8))))
    observer.settle(step, ModelOutput({"a": (9,)}), StepResult((("a", (9,)),), ()))
    seen = observer.live["a"]
    assert (seen.computed, seen.known, seen.tokens[3:]) == (4, 5, [7, 9])
    assert seen.content(1, 4, 5).letters == (9,)


def test_a_preempted_text_has_the_same_content_again() -> None:
    observer = watching(request("a", 8), plans=(plan(new("a", 0, 8, [1, 2])),))
    before = observer.shadow.read(2)
    observer.apply(plan(preempted=("a",)))
    observer.apply(plan(resumed("a", 4, 4, [1, 5])))
    assert observer.shadow.read(5) == before


# --- encoder -------------------------------------------------------------------------------------


def test_encoder_space_is_used_from_the_grant_to_the_report_of_its_end() -> None:
    asking = request("a", 8, items=(EncoderItem(0, 3, 7), EncoderItem(4, 2, 8)))
    observer = watching(asking, plans=(plan(new("a", 0, 8, [1, 2], items=(0, 1))),), **ENCODER)
    assert observer.encoder_used == 5
    observer.apply(plan(freed_items=(("a", 0), ("b", 0))))
    assert (observer.encoder_used, observer.cached) == (2, {("a", 1): 2})


def test_an_item_that_is_computed_again_is_counted_once() -> None:
    asking = request("a", 8, items=(EncoderItem(0, 3, 7),))
    twice = (plan(new("a", 0, 1, [1], items=(0,))), plan(grant("a", 1, 1, items=(0,))))
    assert watching(asking, plans=twice, **ENCODER).encoder_used == 3


# --- the first in line ---------------------------------------------------------------------------


def test_steps_in_which_the_first_in_line_computes_nothing_new_are_counted() -> None:
    observer = watching(request("a", 8), request("b", 8), plans=(plan(new("a", 0, 4, [1])),))
    counts = []
    for each in (plan(), plan(), plan(grant("a", 4, 1, [2])), plan(preempted=("a",)), plan(resumed("a", 0, 5, [1, 2]))):
        observer.apply(each)
        counts.append(observer.stale_steps)
    assert counts == [1, 2, 0, 1, 2]


def test_who_waits_for_a_grammar_is_not_first_in_line() -> None:
    observer = watching(request("a", needs_grammar=True), request("b"), plans=(plan(),))
    assert observer.head == ("b", 0)


# --- results -------------------------------------------------------------------------------------


DUE: tuple[tuple[str, dict[str, Any], tuple[int, ...], Ending], ...] = (
    ("nothing", {}, (), Ending(0, None, None)),
    ("words", {}, (7, 8), Ending(2, None, None)),
    ("end of sequence", {}, (7, 0, 8), Ending(2, STOP, None)),
    ("end of sequence, ignored", {"ignore_eos": True}, (7, 0, 8), Ending(3, None, None)),
    ("a stop token", {}, (5, 0), Ending(1, STOP, 5)),
    ("its own cap", {"max_tokens": 2}, (7, 8, 9), Ending(2, LENGTH, None)),
    ("a stop token at its cap", {"max_tokens": 1}, (5,), Ending(1, STOP, 5)),
    ("the model length", {"prompt": 30}, (7, 8, 9), Ending(2, LENGTH, None)),
)


@pytest.mark.parametrize(("changes", "sampled", "due"), [row[1:] for row in DUE], ids=[row[0] for row in DUE])
def test_what_is_due_after_the_sampled_tokens(changes: dict[str, Any], sampled: tuple[int, ...], due: Ending) -> None:
    observer = watching(request("a", **{"max_tokens": 9, "stop_token_ids": (5,), **changes}))
    assert observer.due(observer.live["a"], sampled) == due


def test_delivered_tokens_are_known_from_then_on() -> None:
    observer = watching(request("a", 4))
    step = observer.apply(plan(new("a", 0, 4, [1])))
    observer.settle(step, ModelOutput({"a": (7,)}), StepResult((("a", (7,)),), ()))
    assert (observer.live["a"].known, observer.live["a"].tokens[4:]) == (5, [7])


@pytest.mark.parametrize(
    ("sampled", "emitted", "kept"),
    [((7,), (7,), 0), ((0,), (0,), 1), ((7,), (), 1), ((), (7,), 1)],
    ids=["as it was sampled", "due to end", "withheld", "made up"],
)
def test_only_what_needs_judgement_is_kept(sampled: tuple[int, ...], emitted: tuple[int, ...], kept: int) -> None:
    observer = watching(request("a", 4))
    step = observer.apply(plan(new("a", 0, 4, [1])))
    result = StepResult((("a", emitted),) if emitted else (), ())
    assert len(observer.settle(step, ModelOutput({"a": sampled} if sampled else {}), result).settled) == kept
