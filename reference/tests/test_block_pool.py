"""The block pool: taking, sharing, releasing, evicting."""

from __future__ import annotations

import pytest

from reference.block_pool import BlockPool
from reference.prefix_index import PrefixIndex
from reference.prefix_keys import ROOT, BlockContent, PrefixKeys


def pool_of(num_blocks: int) -> tuple[BlockPool, int]:
    keys = PrefixKeys()
    return BlockPool(num_blocks, PrefixIndex(keys)), keys.intern(BlockContent(ROOT, (1,), 0, ()))


def test_takes_from_the_front_or_not_at_all() -> None:
    pool, _ = pool_of(5)
    assert pool.free_blocks == 4
    assert pool.take(3) == [1, 2, 3]
    with pytest.raises(ValueError, match="2 blocks wanted, 1 free"):
        pool.take(2)
    assert list(pool.free_queue) == [4]
    assert pool.take(0) == []


def test_a_shared_block_is_free_when_the_last_holder_lets_go() -> None:
    pool, _ = pool_of(4)
    held = pool.take(2)
    pool.touch(held)
    pool.release(reversed(held))
    assert list(pool.free_queue) == [3]
    assert pool.references == [0, 1, 1, 0]
    pool.release(reversed(held))
    assert list(pool.free_queue) == [3, 2, 1]
    with pytest.raises(ValueError, match="block 2 is held by nobody"):
        pool.release([2])


def test_a_hit_takes_a_free_block_out_of_the_middle() -> None:
    pool, _ = pool_of(5)
    assert pool.count_free([2, 3]) == 2
    pool.touch([2, 3])
    assert list(pool.free_queue) == [1, 4]
    assert pool.count_free([2, 3]) == 0


def test_a_free_block_keeps_its_key_until_it_is_taken() -> None:
    pool, key = pool_of(3)
    pool.index.publish(pool.take(1)[0], key)
    pool.release([1])
    assert pool.index.find(key) == 1
    assert pool.take(1) == [2]
    assert pool.index.find(key) == 1
    assert pool.take(1) == [1]
    assert pool.index.find(key) is None


def test_the_shared_prefix_ends_at_the_first_other_count() -> None:
    pool, _ = pool_of(6)
    table = pool.take(4)
    pool.touch([1, 2, 4])
    assert pool.shared_prefix(table, 2) == 2
    assert pool.shared_prefix(table, 1) == 0
    assert pool.shared_prefix([], 1) == 0


def test_reset_needs_an_empty_pool_and_keeps_the_order() -> None:
    pool, key = pool_of(4)
    pool.index.publish(pool.take(1)[0], key)
    assert not pool.reset_index()
    assert pool.index.find(key) == 1
    pool.release([1])
    assert pool.reset_index()
    assert pool.index.find(key) is None
    assert list(pool.free_queue) == [2, 3, 1]
