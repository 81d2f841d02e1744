"""What a grant takes, publishes and charges, and what it says of it."""

from __future__ import annotations

from typing import Any

import pytest

from spec.allocation import Attempt, Step, choose_items, grant
from spec.formulas import blocks_needed
from spec.pool import evictable, touch
from spec.state import State
from spec.tests.build import DRAFTS, EAGLE, ENCODER, admitted, request, state
from spec.vocabulary import Admission, EncoderItem, Grant


def attempt(built: State, computed: int, tokens: int, **values: Any) -> Attempt:
    """An attempt of the only live request, with the blocks that its table lacks."""
    (live,) = built.live.values()
    made = Attempt(built, Step(built.config), live, computed, tokens)
    for name, value in values.items():
        setattr(made, name, value)
    held = len(live.table) + len(made.hits)
    made.evictable = evictable(built.pool, made.hits)
    made.needed = blocks_needed(computed, made.tokens, built.config.lookahead, held, built.config.block_size)
    return made


def granted(made: Attempt, admission: Admission) -> Grant:
    grant(made, admission)
    return made.step.grants[-1]


def test_an_admission_names_its_whole_table() -> None:
    built = state(request("a", 10))
    assert granted(attempt(built, 8, 2, hits=[5, 3]), Admission.NEW) == Grant("a", Admission.NEW, 8, 2, (5, 3, 1))


def test_a_running_request_names_the_new_blocks_only() -> None:
    built = admitted(request("a", 4))
    assert granted(attempt(built, 4, 1), Admission.RUNNING) == Grant("a", Admission.RUNNING, 4, 1, (2,))


def test_a_table_with_room_takes_nothing() -> None:
    built = admitted(request("a", 2))
    assert granted(attempt(built, 2, 2), Admission.RUNNING).blocks == ()


@pytest.mark.parametrize(("held", "outcome"), [(False, "free hits"), (True, "held hits")])
def test_hits_are_adopted_in_front(held: bool, outcome: str) -> None:
    built = state(request("a", 10))
    if held:
        touch(built.pool, 1)
        touch(built.pool, 2)
    granted(attempt(built, 8, 2, hits=[1, 2]), Admission.NEW)
    assert built.live["a"].table == [1, 2, 3]
    assert built.pool.refs[1:4] == ([2, 2, 1] if held else [1, 1, 1])
    assert ("adopt", outcome) in built.log


def test_adopted_blocks_count_as_published() -> None:
    built = state(request("a", 10))
    granted(attempt(built, 8, 2, hits=[1, 2]), Admission.NEW)
    assert built.live["a"].published == 2
    assert not built.pool.key_of


def test_external_tokens_complete_blocks_too() -> None:
    built = state(request("a", 10), use_connector=True)
    entry = granted(attempt(built, 8, 2, external=8), Admission.NEW)
    assert (entry.start, entry.external, entry.blocks) == (8, 8, (1, 2, 3))
    assert sorted(built.pool.key_of) == [1, 2]


def test_nothing_is_published_with_caching_off() -> None:
    assert not admitted(request("a", 8), enable_prefix_caching=False).pool.key_of


def test_lookahead_takes_a_block_behind_the_tokens() -> None:
    assert admitted(request("a", 3), **EAGLE).live["a"].table == [1, 2]


def test_no_table_grows_beyond_the_model_length() -> None:
    built = admitted(request("a", 8), max_model_len=8, **EAGLE)
    assert built.live["a"].table == [1, 2]
    assert attempt(built, 7, 1).needed == 1
    assert granted(attempt(built, 7, 1), Admission.RUNNING).blocks == ()
    assert ("take", "capped at the model length") in built.log


def test_a_table_that_just_reaches_the_model_length_is_not_capped() -> None:
    built = state(request("a", 8), max_model_len=8)
    granted(attempt(built, 0, 8), Admission.NEW)
    assert built.log[0] == ("take", "ok")


@pytest.mark.parametrize(
    ("computed", "tokens", "scheduled", "kept", "outcome"),
    [
        (4, 3, (8, 9), (8, 9), "all scheduled"),
        (4, 2, (8,), (8,), "trimmed"),
        (4, 1, (), (8, 9), "none scheduled"),
        (3, 1, (), (8, 9), "none scheduled"),
    ],
)
def test_drafts_inside_the_grant_are_scheduled(
    computed: int, tokens: int, scheduled: tuple[int, ...], kept: tuple[int, ...], outcome: str
) -> None:
    built = admitted(request("a", 5), **DRAFTS)
    built.live["a"].drafts = (8, 9)
    assert granted(attempt(built, computed, tokens), Admission.RUNNING).drafts == scheduled
    assert built.live["a"].drafts == kept
    assert ("drafts", outcome) in built.log


def test_drafts_of_an_admission_wait() -> None:
    built = state(request("a", 5), **DRAFTS)
    built.live["a"].drafts = (8, 9)
    assert granted(attempt(built, 0, 5), Admission.RESUMED).drafts == ()
    assert built.live["a"].drafts == (8, 9)


def test_a_grant_is_charged_to_both_budgets() -> None:
    built = state(request("a", 10, items=(EncoderItem(1, 3, 7),)), **ENCODER)
    made = attempt(built, 0, 10)
    choose_items(made)
    assert granted(made, Admission.NEW).items == (0,)
    assert (made.step.budget, made.step.encoder_budget, built.encoder_free) == (54, 5, 5)


def test_taking_a_block_evicts_its_key() -> None:
    built = admitted(request("a", 4), num_blocks=2)
    built.pool.refs[1] = 0
    built.pool.free[1] = None
    built.live["a"].table = []
    granted(attempt(built, 0, 1), Admission.RESUMED)
    assert ("take", "evicts a key") in built.log
