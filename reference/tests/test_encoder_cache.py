"""Which items a chunk takes with it, and when they leave the encoder cache."""

from __future__ import annotations

import pytest

from reference.encoder_cache import EncoderCache, Encoding
from reference.live_request import LiveRequest
from reference.tests.driving import config
from spec.vocabulary import EncoderItem, Request


def live() -> LiveRequest:
    items = (EncoderItem(2, 4, 70), EncoderItem(8, 4, 71))
    return LiveRequest.arriving(Request("a", tuple(range(16)), 4, items=items))


def cache(size: int = 20, whole: bool = False) -> EncoderCache:
    settings = config(max_num_encoder_input_tokens=20, encoder_cache_size=size, disable_chunked_mm_input=whole)
    return EncoderCache(settings)


CHUNKS = [
    # (start, tokens, budget, expected, what the case shows)
    (0, 0, 20, Encoding(0, (), 20), "nothing to do"),
    (0, 2, 20, Encoding(2, (), 20), "ends before the item"),
    (0, 3, 20, Encoding(3, (0,), 16), "reaches into it"),
    (0, 16, 20, Encoding(16, (0, 1), 12), "both"),
    (6, 2, 20, Encoding(2, (), 20), "between them"),
    (0, 16, 7, Encoding(8, (0,), 3), "budget for one"),
    (0, 16, 3, Encoding(2, (), 3), "budget for none"),
    (2, 4, 3, Encoding(0, (), 3), "begins with it"),
    (4, 4, 3, Encoding(0, (), 3), "begins inside it"),
    (4, 1, 4, Encoding(1, (0,), 0), "a hit ended inside it"),
]


@pytest.mark.parametrize(("start", "tokens", "budget", "expected", "shows"), CHUNKS)
def test_choice(start: int, tokens: int, budget: int, expected: Encoding, shows: str) -> None:
    assert cache().choose(live(), start, tokens, budget) == expected, shows


WHOLE_ITEMS = [
    (0, 5, Encoding(2, (), 20), "would cut it"),
    (0, 6, Encoding(6, (0,), 16), "ends with it"),
    (2, 3, Encoding(0, (), 20), "begins with it and would cut it"),
    (3, 2, Encoding(2, (0,), 16), "a hit has cut it already"),
    (0, 10, Encoding(8, (0,), 16), "would cut the second"),
]


@pytest.mark.parametrize(("start", "tokens", "expected", "shows"), WHOLE_ITEMS)
def test_choice_of_whole_items(start: int, tokens: int, expected: Encoding, shows: str) -> None:
    assert cache(whole=True).choose(live(), start, tokens, 20) == expected, shows


def test_chosen_items_share_the_room() -> None:
    assert cache(size=7).choose(live(), 0, 16, 20) == Encoding(8, (0,), 16)
    assert cache(size=8).choose(live(), 0, 16, 20) == Encoding(16, (0, 1), 12)


def test_a_choice_takes_no_room_yet() -> None:
    encoder = cache()
    encoder.choose(live(), 0, 16, 20)
    assert encoder.free_tokens == 20
    assert encoder.cached == {}


def test_cached_items_cost_nothing_and_leave_when_computed() -> None:
    encoder = cache(size=8)
    request = live()
    encoder.store(request, (0, 1))
    assert encoder.free_tokens == 0
    assert encoder.choose(request, 0, 16, 0) == Encoding(16, (), 0)
    request.computed = 5
    encoder.release_computed(request)
    assert encoder.drain_freed() == ()
    request.computed = 6
    encoder.release_computed(request)
    assert encoder.drain_freed() == (("a", 0),)
    assert encoder.free_tokens == 4
    encoder.release_all(request)
    encoder.release_all(request)
    assert encoder.drain_freed() == (("a", 1),)
    assert encoder.drain_freed() == ()
    assert encoder.free_tokens == 8
    assert encoder.cached == {}
