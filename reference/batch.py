"""A batch: what one step computes, flattened over its requests, as the kernels are told.

Everything is kept in plain lists until it is sent to the device once.  Rows come in plan order; a request has one
row, whose tokens lie side by side.  Padding rows compute one token of their own into the reserved block, which is
the trash: they read and write nothing else, and their input is NaN, so that one that touches a request shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from spec.vocabulary import RESERVED_BLOCK

PADDING = -1
"""The input of a padding row."""


class Row(NamedTuple):
    """One request's share of a step.

    start     the first position that is computed
    inputs    one embedding row for each position that is computed
    adapter   the row of the adapter, 0 for none
    table     the blocks of the request, from position 0
    sampling  how many of the last positions give logits
    """

    request_id: str
    start: int
    inputs: tuple[int, ...]
    adapter: int
    table: tuple[int, ...]
    sampling: int

    @property
    def end(self) -> int:
        return self.start + len(self.inputs)


@dataclass
class Batch:
    """One step, token by token and row by row.

    inputs, adapters, positions, slots   one for each token
    tables, kv_lens, counts              one for each row: its blocks, the positions that its last token sees,
                                         its number of tokens
    rows                                 where these came from; padding has none
    """

    rows: tuple[Row, ...]
    block_size: int
    inputs: list[int] = field(default_factory=list)
    adapters: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    tables: list[list[int]] = field(default_factory=list)
    kv_lens: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[Row], block_size: int) -> Batch:
        """The batch of some rows, whose tables are long enough (see `bounds`)."""
        batch = cls(tuple(rows), block_size)
        for row in rows:
            span = range(row.start, row.end)
            batch.inputs.extend(row.inputs)
            batch.adapters.extend([row.adapter] * len(span))
            batch.positions.extend(span)
            batch.slots.extend(row.table[p // block_size] * block_size + p % block_size for p in span)
            batch.tables.append(list(row.table))
            batch.kv_lens.append(row.end)
            batch.counts.append(len(span))
        return batch

    def pad(self, multiple: int) -> None:
        """Adds padding rows until the number of tokens is a multiple of `multiple`."""
        for _ in range(-len(self.inputs) % multiple):
            self.inputs.append(PADDING)
            self.adapters.append(0)
            self.positions.append(0)
            self.slots.append(RESERVED_BLOCK * self.block_size)
            self.tables.append([RESERVED_BLOCK])
            self.kv_lens.append(1)
            self.counts.append(1)

    @property
    def firsts(self) -> list[int]:
        """The first token of each row."""
        firsts, at = [], 0
        for count in self.counts:
            firsts.append(at)
            at += count
        return firsts


@dataclass(frozen=True)
class Tables:
    """What attention is told of a batch.

    tables            (rows, widest table) int64, filled up with the reserved block
    kv_lens, counts   (rows,) int64; `kv_len_of`, `count_of` are the same on the host
    first_of          the first token of each row, on the host
    """

    tables: Tensor
    kv_lens: Tensor
    kv_len_of: tuple[int, ...]
    count_of: tuple[int, ...]
    first_of: tuple[int, ...]

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> Tables:
        """Sends the tables of a batch to a device."""
        widest = max(map(len, batch.tables))
        filled = [table + [RESERVED_BLOCK] * (widest - len(table)) for table in batch.tables]
        return cls(
            tables=torch.tensor(filled, dtype=torch.int64, device=device),
            kv_lens=torch.tensor(batch.kv_lens, dtype=torch.int64, device=device),
            kv_len_of=tuple(batch.kv_lens),
            count_of=tuple(batch.counts),
            first_of=tuple(batch.firsts),
        )
