"""Bounds: what is asked of every row before anything is read or written on the device.

A device does not say that an index is wrong: it reads somebody else's memory.  So each error names request,
position and block.
"""

from __future__ import annotations

from collections.abc import Collection

from reference.batch import Batch, Row
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


def check_batch(batch: Batch, num_blocks: int) -> None:
    """The last gate before the device: raises OutOfBounds for what leads out of the pool, or out of a table."""
    size = batch.block_size
    for row, first in zip(batch.rows, batch.firsts, strict=False):
        for position, slot in enumerate(batch.slots[first : first + len(row.inputs)], row.start):
            if not 0 <= slot < num_blocks * size:
                raise OutOfBounds(f"{row.request_id}: position {position}: slot {slot} is in block {slot // size}")
    for row, table, kv_len in zip(batch.rows, batch.tables, batch.kv_lens, strict=False):
        if kv_len > len(table) * size:
            raise OutOfBounds(f"{row.request_id}: position {kv_len - 1}: behind a table of {len(table)} blocks")
        outside = next((block for block in table if not 0 <= block < num_blocks), None)
        if outside is not None:
            at = table.index(outside) * size
            raise OutOfBounds(f"{row.request_id}: position {at}: block {outside} is outside the pool of {num_blocks}")
