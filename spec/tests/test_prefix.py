"""Keys are equal if and only if their contents are; what is hit, and when a block becomes hittable."""

from __future__ import annotations

from typing import Any

import pytest

from spec.lifecycle import release_table
from spec.prefix import longest_hit, publish_complete
from spec.state import State
from spec.tests.build import DRAFTS, EAGLE, ENCODER, admitted, request, sample, snapshot, state
from spec.vocabulary import EncoderItem, Request

TEXT = tuple(range(1, 9))
ROOMY = {"max_loras": 2, **ENCODER}


def keys_of(*requests: Request, **changes: Any) -> list[list[int]]:
    """The prefix keys of requests that were looked up in one state."""
    built = state(*requests, **{**ROOMY, **changes})
    for live in built.waiting:
        longest_hit(built, live)
    return [live.keys for live in built.waiting]


def cached(*requests: Request, **changes: Any) -> State:
    """A state in which requests ran and left: their blocks are free and hittable."""
    built = admitted(*requests, **changes)
    for live in built.running:
        release_table(built, live)
    built.running = []
    return built


def hit_of(built: State, asking: Request) -> list[int]:
    added = state(asking, **{name: getattr(built.config, name) for name in built.config.__slots__})
    return longest_hit(built, added.waiting[0])


SAME: tuple[tuple[str, dict[str, Any]], ...] = (
    ("another id", {}),
    ("another cap", {"max_tokens": 1}),
    ("another priority", {"priority": 3}),
    ("an item behind the block", {"items": (EncoderItem(4, 2, 7),)}),
)

DIFFERENT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("another token", {"prompt": (1, 2, 3, 5, *TEXT[4:])}),
    ("another adapter", {"lora_id": 1}),
    ("an item", {"items": (EncoderItem(0, 2, 7),)}),
    ("an item that ends with the block", {"items": (EncoderItem(3, 1, 7),)}),
)


@pytest.mark.parametrize("changes", [row[1] for row in SAME], ids=[row[0] for row in SAME])
def test_equal_contents_have_equal_keys(changes: dict[str, Any]) -> None:
    first, second = keys_of(request("a", TEXT), request("b", **{"prompt": TEXT, **changes}))
    assert first[0] == second[0]


@pytest.mark.parametrize("changes", [row[1] for row in DIFFERENT], ids=[row[0] for row in DIFFERENT])
def test_different_contents_have_different_keys_from_there_on(changes: dict[str, Any]) -> None:
    first, second = keys_of(request("a", TEXT), request("b", **{"prompt": TEXT, **changes}))
    assert not set(first) & set(second)


def test_a_key_covers_all_blocks_before_it() -> None:
    (keys,) = keys_of(request("a", (1, 2, 3, 4) * 3))
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    ("item", "named"),
    [
        (EncoderItem(2, 2, 7), [((7, 2),), ()]),
        (EncoderItem(4, 2, 7), [(), ((7, 0),)]),
        (EncoderItem(3, 2, 7), [((7, 3),), ((7, -1),)]),
    ],
    ids=["ends at the border", "starts at the border", "across the border"],
)
def test_a_block_names_the_items_that_overlap_it(item: EncoderItem, named: list[tuple[tuple[int, int], ...]]) -> None:
    built = state(request("a", TEXT, items=(item,)), **ENCODER)
    longest_hit(built, built.waiting[0])
    assert [meaning[2] for meaning in built.key_table] == named


def test_keys_are_worked_out_at_the_first_lookup_then_with_publication() -> None:
    built = state(request("a", TEXT), num_blocks=9)
    live = built.waiting[0]
    longest_hit(built, live)
    sample(built, "a", 9, 9, 9, 9)
    longest_hit(built, live)
    assert len(live.keys) == 2
    live.table = [1, 2, 3]
    publish_complete(built, live, 0, 12)
    assert len(live.keys) == 3


# --- lookup ------------------------------------------------------------------------------------


LOOKUPS: tuple[tuple[str, dict[str, Any], dict[str, Any], list[int]], ...] = (
    ("a longer text", {}, {"prompt": (*TEXT, 9)}, [1, 2]),
    ("the same text, whole blocks", {}, {"prompt": TEXT}, [1]),
    ("one block and a half", {}, {"prompt": TEXT[:6]}, [1]),
    ("less than a block", {}, {"prompt": TEXT[:3]}, []),
    ("the first block differs", {}, {"prompt": (9, *TEXT[1:], 9)}, []),
    ("the second block differs", {}, {"prompt": (*TEXT[:7], 9, 9)}, [1]),
    ("a drafter with KV", EAGLE, {"prompt": (*TEXT, 9)}, [1]),
    ("a drafter without KV", DRAFTS, {"prompt": (*TEXT, 9)}, [1, 2]),
    ("prompt logprobs", {}, {"prompt": (*TEXT, 9), "prompt_logprobs": True}, []),
    ("caching off", {"enable_prefix_caching": False}, {"prompt": (*TEXT, 9)}, []),
)


@pytest.mark.parametrize(("changes", "asking", "hit"), [row[1:] for row in LOOKUPS], ids=[row[0] for row in LOOKUPS])
def test_what_a_waiting_request_hits(changes: dict[str, Any], asking: dict[str, Any], hit: list[int]) -> None:
    assert hit_of(cached(request("a", TEXT), **changes), request("b", **asking)) == hit


def test_a_lookup_takes_nothing() -> None:
    built = cached(request("a", TEXT))
    before = snapshot(built)
    assert hit_of(built, request("b", TEXT))
    assert snapshot(built) == before


# --- publication -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("computed", "tokens", "drafts", "published"),
    [(0, 3, 0, 0), (0, 4, 0, 1), (0, 8, 0, 2), (4, 4, 1, 1), (0, 1, 5, 0)],
    ids=["none complete", "one", "two", "drafts left out", "more drafts than tokens"],
)
def test_what_scheduled_tokens_complete_is_published(computed: int, tokens: int, drafts: int, published: int) -> None:
    built = state(request("a", TEXT))
    live = built.waiting[0]
    live.table, live.drafts = [1, 2], (0,) * drafts
    publish_complete(built, live, computed, tokens)
    assert live.published == len(built.pool.key_of) == published


@pytest.mark.parametrize(("tokens", "drafts", "told"), [(1, 5, True), (5, 5, False)])
def test_more_drafts_than_tokens_are_told(tokens: int, drafts: int, told: bool) -> None:
    built = state(request("a", TEXT))
    built.waiting[0].drafts = (0,) * drafts
    publish_complete(built, built.waiting[0], 0, tokens)
    assert (("publish", "more drafts than tokens") in built.log) is told


def test_the_published_count_never_falls() -> None:
    built = admitted(request("a", TEXT), **DRAFTS)
    live = built.running[0]
    before = snapshot(built)
    live.drafts = (9, 9)
    publish_complete(built, live, 8, 1)
    live.drafts = ()
    assert snapshot(built) == before
    assert ("publish", "fewer complete than published") in built.log
