"""The step as a whole: written-out plans, determinism, and what each quirk changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spec.lifecycle import abort
from spec.scheduler import Oracle, common_prefix_blocks, schedule
from spec.tests.build import (
    DRAFTS,
    EAGLE,
    ENCODER,
    PROFILE,
    admitted,
    config,
    grant,
    names,
    new,
    plan,
    request,
    resumed,
    state,
)
from spec.tests.drive import EOS, Run
from spec.vocabulary import QUIRKS, EncoderItem, FinishReason, ModelOutput, Profile, Refused, StepPlan

# --- preempt and resume, written out (GT-1) -----------------------------------------------------

GT_1: tuple[tuple[StepPlan, int], ...] = (
    (plan(new("a", 0, 11, [1, 2, 3]), new("b", 0, 11, [4, 5, 6]), common_prefix_blocks=0), 0),
    (plan(grant("a", 11, 1), grant("b", 11, 1), common_prefix_blocks=0), 0),
    (plan(grant("a", 12, 1, [6]), preempted=("b",), common_prefix_blocks=4), 2),
    (plan(grant("a", 13, 1), common_prefix_blocks=4), 2),
    (plan(grant("a", 14, 1), common_prefix_blocks=4), 2),
    (plan(grant("a", 15, 1), common_prefix_blocks=4), 2),
    (plan(resumed("b", 8, 5, [4, 5, 6, 3]), finished=("a",), common_prefix_blocks=4), 2),
    (plan(grant("b", 13, 1), common_prefix_blocks=4), 2),
    (plan(grant("b", 14, 1), common_prefix_blocks=4), 2),
    (plan(grant("b", 15, 1), common_prefix_blocks=4), 2),
    (plan(finished=("b",), common_prefix_blocks=0), 6),
)
"""Six usable blocks, two prompts of 11 tokens, six output tokens each: (plan, free blocks behind it)."""


def test_preempt_and_resume_to_the_block_id() -> None:
    run = Run(config(num_blocks=7, max_model_len=64))
    run.add(request("a", 11, 6), request("b", 11, 6))
    for number, (expected, free) in enumerate(GT_1):
        found = run.oracle.schedule()
        assert found == expected, f"step {number}"
        assert len(run.state.pool.free) == free, f"step {number}"
        words = ModelOutput({entry.request_id: (7,) for entry in found.grants})
        run.oracle.commit(found, words)
    assert list(run.state.pool.free) == [2, 1, 3, 6, 5, 4]


# --- determinism ---------------------------------------------------------------------------------


def under_pressure() -> list[StepPlan]:
    run = Run(config(num_blocks=9, max_num_batched_tokens=12, max_loras=1, **DRAFTS))
    run.add(*(request(name, 3 + i, 9, lora_id=i % 3) for i, name in enumerate("abcdef")))
    run.steps(8, accepted=1)
    run.abort("c")
    run.steps(20, accepted=2)
    return run.plans


def test_the_same_events_give_the_same_plans() -> None:
    plans = under_pressure()
    assert plans == under_pressure()
    assert any(each.preempted for each in plans)


# --- the step ------------------------------------------------------------------------------------


def test_computed_tokens_advance_when_they_are_scheduled() -> None:
    built = state(request("a", 8), long_prefill_token_threshold=5)
    schedule(built)
    assert built.live["a"].computed == 5


def test_nobody_is_admitted_in_a_step_that_preempted() -> None:
    built = admitted(request("a", 4), request("b", 8), num_blocks=4)
    for name in "ab":
        built.live[name].tokens.append(7)
        built.live[name].known += 1
    built.waiting.extend(state(request("c", 1)).waiting)
    found = schedule(built)
    assert (found.preempted, names(list(built.waiting))) == (("b",), ["b", "c"])
    assert [entry.request_id for entry in found.grants] == ["a"]
    assert built.log[-1] == ("admissions", "preempted")


def test_a_prefix_published_in_this_step_is_hit_in_this_step() -> None:
    built = state(request("a", range(9)), request("b", range(9)))
    found = schedule(built)
    assert found.grants == (new("a", 0, 9, [1, 2, 3]), new("b", 8, 1, [1, 2, 4]))
    assert found.common_prefix_blocks == 2


def test_adapters_of_running_requests_count_though_they_get_nothing() -> None:
    built = admitted(request("a", lora_id=1), max_loras=1)
    built.waiting.extend(state(request("b", lora_id=2), max_loras=1).waiting)
    assert schedule(built).grants == ()
    assert ("examine", "adapters") in built.log


def test_what_ended_is_reported_once_and_sorted() -> None:
    oracle = Oracle(config(), PROFILE)
    for name in "ba":
        oracle.add(request(name))
        oracle.abort(name)
    assert oracle.schedule().finished == ("a", "b")
    assert oracle.schedule().finished == ()


def test_freed_items_are_reported_once_and_sorted() -> None:
    item = (EncoderItem(0, 4, 1),)
    built = admitted(request("b", items=item), request("a", items=item), **ENCODER)
    for name in "ba":
        abort(built, name)
    assert schedule(built).freed_items == (("a", 0), ("b", 0))
    assert schedule(built).freed_items == ()


@pytest.mark.parametrize(
    ("prompts", "shared"),
    [((), 0), ((range(9),), 3), ((range(9), range(9)), 2), ((range(9), range(5)), 1), ((range(9), range(50, 59)), 0)],
    ids=["nobody", "alone", "twins", "one block", "strangers"],
)
def test_the_common_prefix_is_what_every_running_request_holds(prompts: tuple[range, ...], shared: int) -> None:
    built = admitted(*(request(name, prompt) for name, prompt in zip("ab", prompts, strict=False)))
    assert common_prefix_blocks(built) == shared


# --- quirks --------------------------------------------------------------------------------------

Decision = Callable[[Profile], object]


def stop_at_the_cap(profile: Profile) -> object:
    run = Run(config(), profile)
    run.add(request("a", 4, 1))
    found = run.oracle.schedule()
    (end,) = run.oracle.commit(found, ModelOutput({"a": (EOS,)})).finished
    return end.reason


def too_long_a_prompt(profile: Profile) -> object:
    oracle = Oracle(config(num_blocks=3), profile)
    try:
        oracle.add(request("a", 12))
    except Refused:
        return "refused"
    return "accepted"


def two_items_for_a_cache_of_one(profile: Profile) -> object:
    items = (EncoderItem(0, 4, 1), EncoderItem(4, 4, 2))
    built = state(request("a", 8, items=items), profile=profile, encoder_cache_size=4, max_num_encoder_input_tokens=8)
    return schedule(built).grants[0].items


def items_of_a_victim(profile: Profile) -> object:
    asking = request("b", 4, 9, items=(EncoderItem(0, 4, 1),))
    built = admitted(request("a", 4, 9), asking, profile=profile, num_blocks=3, **ENCODER)
    built.live["a"].tokens.append(7)
    built.live["a"].known += 1
    found = schedule(built)
    assert found.preempted == ("b",)
    return found.freed_items


def a_chunk_that_begins_at_an_item(profile: Profile) -> object:
    built = state(
        request("a", 4),
        request("b", 4, items=(EncoderItem(0, 4, 1),)),
        profile=profile,
        max_num_seqs=2,
        max_num_batched_tokens=6,
        disable_chunked_mm_input=True,
        **ENCODER,
    )
    return [(entry.request_id, entry.tokens) for entry in schedule(built).grants]


def a_generated_block_behind_an_item(profile: Profile) -> object:
    """The item ends where the generated block begins; a later prompt has the same text."""
    item = (EncoderItem(0, 4, 1),)
    run = Run(config(**ENCODER), profile)
    run.add(request("a", (9, 9, 9, 9), 5, items=item))
    run.steps(6)
    run.add(request("b", (9, 9, 9, 9, 7, 7, 7, 7, 7), items=item))
    return run.step().grants[0].start


def a_generated_block_with_two_items(profile: Profile) -> object:
    items = (EncoderItem(4, 1, 1), EncoderItem(5, 1, 2))
    run = Run(config(**ENCODER), profile)
    run.add(request("a", (9,) * 6, 3, items=items))
    run.steps(4)
    run.add(request("b", (9,) * 6 + (7,) * 3, items=items))
    return run.step().grants[0].start


QUIRK_SCENES: dict[str, tuple[Decision, Any, Any]] = {
    "length_before_stop": (stop_at_the_cap, FinishReason.STOP, FinishReason.LENGTH),
    "accepts_unservable": (too_long_a_prompt, "refused", "accepted"),
    "encoder_overcommit": (two_items_for_a_cache_of_one, (0,), (0, 1)),
    "encoder_kept_on_preemption": (items_of_a_victim, (("b", 0),), ()),
    "splits_item_at_start": (a_chunk_that_begins_at_an_item, [("a", 4)], [("a", 4), ("b", 2)]),
    "generated_block_names_last_item": (a_generated_block_behind_an_item, 8, 4),
}
"""A decision for each quirk: what is lawful, and what the release decides."""


@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_quirk_changes_a_decision(quirk: str) -> None:
    decide, lawful, released = QUIRK_SCENES[quirk]
    assert decide(PROFILE) == lawful
    assert decide(Profile(PROFILE.name, frozenset({quirk}))) == released


@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_quirk_changes_no_other_decision(quirk: str) -> None:
    for other, (decide, lawful, _) in QUIRK_SCENES.items():
        if other != quirk:
            assert decide(Profile(PROFILE.name, frozenset({quirk}))) == lawful


def test_a_quirk_names_no_item_but_the_last() -> None:
    quirk = Profile(PROFILE.name, frozenset({"generated_block_names_last_item"}))
    assert a_generated_block_with_two_items(PROFILE) == 8
    assert a_generated_block_with_two_items(quirk) == 4


# --- drafts, written out -------------------------------------------------------------------------


def test_drafts_are_verified_and_rejected_ones_computed_again() -> None:
    run = Run(config(**DRAFTS))
    run.add(request("a", 3, 9))
    run.step()
    assert run.step(accepted=1).grants == (grant("a", 3, 3, [2], drafts=(7, 7)),)
    assert run.step(accepted=2).grants == (grant("a", 5, 3, drafts=(7, 7)),)
    assert run.step().grants == (grant("a", 8, 3, [3], drafts=(7, 7)),)


def test_a_drafter_with_kv_keeps_slots_and_gives_a_block_back() -> None:
    run = Run(config(**EAGLE))
    run.add(request("a", range(9)), request("b", range(9)))
    assert run.step().grants == (new("a", 0, 9, [1, 2, 3]), new("b", 4, 5, [1, 4, 5]))
