"""Lookup, allocation and release of one request's blocks."""

from __future__ import annotations

from reference.kv_cache import KVCache
from reference.live_request import LiveRequest
from reference.tests.driving import config
from spec.vocabulary import Request


def live(name: str, prompt: int) -> LiveRequest:
    return LiveRequest.arriving(Request(name, tuple(range(prompt)), 8))


def test_a_refused_allocation_changes_nothing() -> None:
    cache = KVCache(config(num_blocks=3))
    request = live("a", 12)
    assert cache.lookup(request) == []
    assert cache.allocate(request, 12) is None
    assert request.table == []
    assert cache.pool.free_blocks == 2
    assert cache.allocate(request, 8) == [1, 2]


def test_a_refused_hit_is_not_touched() -> None:
    cache = KVCache(config(num_blocks=4))
    first = live("a", 8)
    cache.lookup(first)
    cache.allocate(first, 8)
    cache.release(first)
    second = live("b", 16)
    hits = cache.lookup(second)
    assert hits == [1, 2]
    before = list(cache.pool.free_queue)
    assert cache.allocate(second, 8, hits) is None
    assert list(cache.pool.free_queue) == before


def test_surplus_blocks_are_used_before_new_ones() -> None:
    cache = KVCache(config())
    request = live("a", 4)
    cache.lookup(request)
    assert cache.allocate(request, 9) is not None
    request.computed = 5
    assert cache.allocate(request, 4) == []


def test_each_block_is_named_once() -> None:
    cache = KVCache(config())
    request = live("a", 10)
    cache.lookup(request)
    named = list(request.keys)
    assert len(named) == 2
    cache.allocate(request, 10)
    cache.lookup(request)
    assert request.keys == named
    request.tokens.extend((1, 2, 3))
    request.computed = 10
    cache.allocate(request, 2)
    assert request.keys[:2] == named
    assert len(request.keys) == 3


def test_a_list_of_no_keys_is_tried_again() -> None:
    cache = KVCache(config())
    request = live("a", 3)
    assert cache.lookup(request) == []
    request.tokens.append(3)
    cache.lookup(request)
    assert len(request.keys) == 1


def test_nothing_is_named_without_caching() -> None:
    cache = KVCache(config(enable_prefix_caching=False))
    request = live("a", 8)
    assert cache.lookup(request) == []
    cache.allocate(request, 8)
    assert request.keys == []
    assert len(cache.keys) == 0


def test_keys_are_forgotten_with_the_last_holder() -> None:
    cache = KVCache(config())
    request = live("a", 8)
    cache.lookup(request)
    cache.allocate(request, 8)
    cache.release(request)
    cache.forget(request)
    assert len(cache.keys) == 2
    assert cache.pool.reset_index()
    assert len(cache.keys) == 0


def test_more_drafts_than_tokens_publish_nothing() -> None:
    cache = KVCache(config())
    request = live("a", 8)
    request.drafts = (1, 2, 3)
    cache.lookup(request)
    cache.allocate(request, 2)
    assert request.published_blocks == 0
    assert cache.pool.index.key_of(1) is None
