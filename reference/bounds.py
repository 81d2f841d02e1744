"""Bounds: what is asked of every row before anything is read or written on the device.

A device does not say that an index is wrong: it reads somebody else's memory.  So each error names request,
position and block.
"""

from __future__ import annotations

from collections.abc import Collection

from reference.batch import Row
from spec.vocabulary import RESERVED_BLOCK


class OutOfBounds(ValueError):
    """A plan that names a slot which does not exist or was never given."""


def check_row(row: Row, num_blocks: int, block_size: int, handed_out: Collection[int]) -> None:
    """Raises OutOfBounds for the first position of the row that has no slot of its own in the pool."""
    for position in range(0, row.end, block_size):
        index = position // block_size
        where = f"{row.request_id}: position {position}"
        if index >= len(row.table):
            raise OutOfBounds(f"{where}: table of {len(row.table)} blocks is too short, it ends at {row.end}")
        block = row.table[index]
        if not 0 <= block < num_blocks:
            raise OutOfBounds(f"{where}: block {block} is outside the pool of {num_blocks}")
        if block == RESERVED_BLOCK:
            raise OutOfBounds(f"{where}: block {block} is reserved")
        if block not in handed_out:
            raise OutOfBounds(f"{where}: block {block} was never handed out by a plan")
