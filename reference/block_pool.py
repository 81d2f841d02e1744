"""The block pool: which blocks are free, how many tables hold each block, which are published.

A block is free exactly when no table holds it.  A free block keeps its prefix key until it is
handed out again, so that a later request can still hit it (FREE-4, EVI-1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reference.free_queue import FreeQueue
from reference.prefix_index import PrefixIndex


class BlockPool:
    """`num_blocks` blocks, of which block 0 is reserved and never handed out (BLK-1)."""

    def __init__(self, num_blocks: int, index: PrefixIndex) -> None:
        self.free_queue = FreeQueue(num_blocks)
        self.index = index
        self.references = [0] * num_blocks
        self._usable_blocks = num_blocks - 1

    @property
    def free_blocks(self) -> int:
        return len(self.free_queue)

    def take(self, count: int) -> list[int]:
        """`count` blocks from the front of the free queue, without their old keys.

        ValueError if fewer are free; then nothing is taken (BLK-3, EVI-1).
        """
        if count > self.free_blocks:
            raise ValueError(f"{count} blocks wanted, {self.free_blocks} free")
        taken = [self.free_queue.pop_front() for _ in range(count)]
        for block in taken:
            self.index.evict(block)
            self.references[block] = 1
        return taken

    def count_free(self, blocks: Iterable[int]) -> int:
        """How many of these blocks are free now: a hit on them costs a free block (ALLOC-1)."""
        return sum(1 for block in blocks if self.references[block] == 0)

    def touch(self, blocks: Iterable[int]) -> None:
        """Hold these blocks once more; free ones leave the free queue (BLK-4)."""
        for block in blocks:
            if self.references[block] == 0:
                self.free_queue.remove(block)
            self.references[block] += 1

    def release(self, blocks: Iterable[int]) -> None:
        """Hold these blocks once less; those that nobody holds go to the back, in this order.

        ValueError for a block that nobody holds (FREE-1, FREE-3).
        """
        for block in blocks:
            if self.references[block] == 0:
                raise ValueError(f"block {block} is held by nobody")
            self.references[block] -= 1
            if self.references[block] == 0:
                self.free_queue.append(block)

    def shared_prefix(self, table: Sequence[int], holders: int) -> int:
        """How many leading blocks of a table are held by `holders` tables (OUT-5)."""
        shared = 0
        for block in table:
            if self.references[block] != holders:
                break
            shared += 1
        return shared

    def reset_index(self) -> bool:
        """Forget all keys if every block is free; the free order stays (RESET-1)."""
        if self.free_blocks < self._usable_blocks:
            return False
        self.index.clear()
        return True
