"""The free queue: free blocks in the order in which they will be handed out (BLK-2, FREE-1).

A doubly linked list over two arrays of ints.  Every operation costs O(1), removal from the
middle too, because a prefix hit takes a block from wherever it stands (BLK-4).
"""

from __future__ import annotations

from collections.abc import Iterator

from spec.vocabulary import RESERVED_BLOCK

_ENDS = RESERVED_BLOCK
"""The reserved block is never free, so its cells serve as both ends of the ring."""

_ABSENT = -1


class FreeQueue:
    """Free block ids, front first; at the start all usable ids ascending (BLK-1, BLK-2)."""

    def __init__(self, num_blocks: int) -> None:
        self._next: list[int] = [*range(1, num_blocks), _ENDS]
        self._prev: list[int] = [num_blocks - 1, *range(num_blocks - 1)]
        self._length = num_blocks - 1

    def __len__(self) -> int:
        return self._length

    def __contains__(self, block: int) -> bool:
        return block != _ENDS and self._next[block] != _ABSENT

    def __iter__(self) -> Iterator[int]:
        """All free blocks in order; O(free blocks), so for inspection only."""
        block = self._next[_ENDS]
        while block != _ENDS:
            yield block
            block = self._next[block]

    def pop_front(self) -> int:
        """The block that has been free longest; IndexError if none is free (BLK-3)."""
        block = self._next[_ENDS]
        if block == _ENDS:
            raise IndexError("no free block")
        self.remove(block)
        return block

    def remove(self, block: int) -> None:
        """Take a block out of wherever it stands; ValueError if it is not free (BLK-4)."""
        if block not in self:
            raise ValueError(f"block {block} is not free")
        before = self._prev[block]
        after = self._next[block]
        self._next[before] = after
        self._prev[after] = before
        self._next[block] = _ABSENT
        self._length -= 1

    def append(self, block: int) -> None:
        """Put a block at the back; ValueError if it is reserved or already free (FREE-1)."""
        if block == _ENDS or block in self:
            raise ValueError(f"block {block} cannot become free")
        last = self._prev[_ENDS]
        self._next[last] = block
        self._prev[block] = last
        self._next[block] = _ENDS
        self._prev[_ENDS] = block
        self._length += 1
