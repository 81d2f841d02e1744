"""The block pool: who holds a block, which blocks are free and in which order, what is hittable.

A block is free if and only if nobody refers to it.  A free block keeps its prefix key until it
is taken again: eviction is lazy, and the front of the free queue goes first (EVI-1).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from spec.vocabulary import RESERVED_BLOCK

Key = int


class Pool:
    """Blocks `1 .. num_blocks - 1`; block 0 is never handed out (BLK-1).

    refs     references to each block
    free     the free queue, front first, from which a block can leave at any place (BLK-2)
    key_of   the prefix key under which a block is hittable
    holders  the blocks that are hittable under a key, oldest registration first (CACHE-4)
    """

    __slots__ = ("free", "holders", "key_of", "refs")

    def __init__(self, num_blocks: int) -> None:
        self.refs = [0] * num_blocks
        self.free: OrderedDict[int, None] = OrderedDict.fromkeys(range(RESERVED_BLOCK + 1, num_blocks))
        self.key_of: dict[int, Key] = {}
        self.holders: dict[Key, dict[int, None]] = {}


def take(pool: Pool) -> int:
    """Takes the front of the free queue and evicts its key (BLK-3)."""
    block, _ = pool.free.popitem(last=False)
    if block in pool.key_of:
        withdraw(pool, block)
    pool.refs[block] = 1
    return block


def touch(pool: Pool, block: int) -> None:
    """Adds a reference to a hit block, free or not (BLK-4)."""
    if pool.refs[block] == 0:
        del pool.free[block]
    pool.refs[block] += 1


def release(pool: Pool, block: int) -> None:
    """Drops a reference; the last one puts the block at the back of the free queue (FREE-1, FREE-3)."""
    pool.refs[block] -= 1
    if pool.refs[block] == 0:
        pool.free[block] = None


def publish(pool: Pool, block: int, key: Key) -> None:
    """Makes a block hittable under `key`, behind its older duplicates (CACHE-4)."""
    pool.key_of[block] = key
    pool.holders.setdefault(key, {})[block] = None


def withdraw(pool: Pool, block: int) -> None:
    """Takes a block's key away; its duplicates stay hittable (EVI-1)."""
    key = pool.key_of.pop(block)
    del pool.holders[key][block]
    if not pool.holders[key]:
        del pool.holders[key]


def oldest(pool: Pool, key: Key) -> int | None:
    """The block to hit under `key`: the oldest registration that survives (CACHE-4)."""
    return next(iter(pool.holders[key])) if key in pool.holders else None


def evictable(pool: Pool, hits: Iterable[int]) -> int:
    """How many of the hit blocks are free at the moment (ALLOC-1)."""
    return sum(pool.refs[block] == 0 for block in hits)


def forget_keys(pool: Pool) -> bool:
    """Withdraws every key if no block is held; the free queue keeps its order (RESET-1)."""
    if len(pool.free) != len(pool.refs) - 1:
        return False
    pool.key_of.clear()
    pool.holders.clear()
    return True
