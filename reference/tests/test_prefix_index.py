"""The prefix index: oldest first, equal blocks side by side."""

from __future__ import annotations

import pytest

from reference.prefix_index import PrefixIndex
from reference.prefix_keys import ROOT, BlockContent, PrefixKeys


def index_with_two_keys() -> tuple[PrefixIndex, PrefixKeys, int, int]:
    keys = PrefixKeys()
    first = keys.intern(BlockContent(ROOT, (1,), 0, ()))
    second = keys.intern(BlockContent(ROOT, (2,), 0, ()))
    return PrefixIndex(keys), keys, first, second


def test_the_oldest_block_is_found() -> None:
    index, _, first, second = index_with_two_keys()
    assert index.find(first) is None
    index.publish(7, first)
    index.publish(3, first)
    index.publish(5, second)
    assert index.find(first) == 7
    assert index.find(second) == 5
    assert [index.key_of(block) for block in (7, 3, 5, 1)] == [first, first, second, None]


def test_evicting_one_of_two_equal_blocks_keeps_the_other() -> None:
    index, _, first, _ = index_with_two_keys()
    index.publish(7, first)
    index.publish(3, first)
    index.evict(7)
    assert index.find(first) == 3
    index.publish(7, first)
    assert index.find(first) == 3
    index.evict(3)
    index.evict(7)
    assert index.find(first) is None
    index.evict(7)


def test_a_block_has_one_key() -> None:
    index, _, first, second = index_with_two_keys()
    index.publish(7, first)
    with pytest.raises(ValueError, match="block 7 already has a key"):
        index.publish(7, second)


def test_a_published_block_holds_its_key() -> None:
    index, keys, first, second = index_with_two_keys()
    index.publish(7, first)
    keys.release(first)
    keys.release(second)
    assert len(keys) == 1
    index.clear()
    assert len(keys) == 0
    assert index.find(first) is None
    assert index.key_of(7) is None
