"""Which items a step computes, where the decoder stops, and what the cache holds."""

from __future__ import annotations

from typing import Any

import pytest

from spec.encoder import STOPS, Chosen, cache_item, choose_items, free_all, free_consumed
from spec.state import State
from spec.tests.build import request, snapshot, state
from spec.vocabulary import EncoderItem

TWO = (EncoderItem(2, 4, 70), EncoderItem(8, 4, 71))
WHOLE = {"disable_chunked_mm_input": True}


def with_items(*cached: int, **changes: Any) -> State:
    """One waiting request of 16 tokens with items at 2..6 and 8..12; room for both."""
    built = state(
        request("a", 16, items=TWO), **{"max_num_encoder_input_tokens": 8, "encoder_cache_size": 8, **changes}
    )
    for index in cached:
        cache_item(built, built.waiting[0], index)
    return built


CHOICES: tuple[tuple[str, dict[str, Any], tuple[int, ...], tuple[int, int, int], Chosen, str], ...] = (
    ("before any item", {}, (), (0, 2, 8), Chosen((), 2, 8), ""),
    ("reaches the first", {}, (), (0, 3, 8), Chosen((0,), 3, 4), "ok"),
    ("between the items", {}, (), (6, 2, 8), Chosen((), 2, 8), ""),
    ("both", {}, (), (0, 16, 8), Chosen((0, 1), 16, 0), "ok"),
    ("from inside the first", {}, (), (5, 1, 8), Chosen((0,), 1, 4), "ok"),
    ("the first is cached", {}, (0,), (0, 16, 8), Chosen((1,), 16, 4), "ok"),
    ("behind both", {}, (), (12, 4, 8), Chosen((), 4, 8), ""),
    ("no tokens", {}, (), (2, 0, 8), Chosen((), 0, 8), ""),
    ("the budget ends", {}, (), (0, 16, 7), Chosen((0,), 8, 3), "encoder budget"),
    ("no budget at an item", {}, (), (2, 4, 3), Chosen((), 0, 3), "encoder budget"),
    ("no budget inside an item", {}, (), (4, 4, 0), Chosen((), 0, 0), "encoder budget"),
    ("the cache is full", {"encoder_cache_size": 4}, (), (0, 16, 8), Chosen((0,), 8, 4), "encoder cache"),
    ("would cut the first", WHOLE, (), (0, 5, 8), Chosen((), 2, 8), "item would be cut"),
    ("would cut at its start", WHOLE, (), (2, 3, 8), Chosen((), 0, 8), "item would be cut"),
    ("ends with the first", WHOLE, (), (0, 6, 8), Chosen((0,), 6, 4), "ok"),
    ("would cut the second", WHOLE, (), (0, 9, 8), Chosen((0,), 8, 4), "item would be cut"),
)


@pytest.mark.parametrize(
    ("changes", "cached", "asked", "chosen", "outcome"), [row[1:] for row in CHOICES], ids=[row[0] for row in CHOICES]
)
def test_what_is_chosen(
    changes: dict[str, Any], cached: tuple[int, ...], asked: tuple[int, int, int], chosen: Chosen, outcome: str
) -> None:
    built = with_items(*cached, **changes)
    before = snapshot(built)
    assert choose_items(built, built.waiting[0], *asked) == chosen
    assert [last for _, last in built.log[-1:]] == [outcome] * bool(outcome)
    assert snapshot(built) == before


def test_every_reason_to_stop_is_tried() -> None:
    assert {name for name, _ in STOPS} == {row[5] for row in CHOICES} - {"", "ok"}


@pytest.mark.parametrize(
    ("computed", "freed"), [(5, []), (6, [("a", 0)]), (11, [("a", 0)]), (12, [("a", 0), ("a", 1)])]
)
def test_an_item_leaves_when_the_decoder_has_passed_it(computed: int, freed: list[tuple[str, int]]) -> None:
    built = with_items(0, 1)
    built.waiting[0].computed = computed
    free_consumed(built, built.waiting[0])
    assert built.freed == freed
    assert built.encoder_free == 4 * len(freed)


def test_the_cache_gets_back_what_it_gave() -> None:
    built = with_items()
    cache_item(built, built.waiting[0], 1)
    assert (built.encoder_free, built.waiting[0].cached) == (4, {1})
    free_all(built, built.waiting[0])
    assert (built.encoder_free, built.waiting[0].cached) == (8, set())
    assert built.freed == [("a", 1)]
