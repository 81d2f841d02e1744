"""Faults in what the kernels are told.  A function changes one batch; a class remembers the batches before."""

from __future__ import annotations

from reference.batch import PADDING, Batch, Row
from spec.vocabulary import RESERVED_BLOCK


def _rows(batch: Batch) -> list[tuple[Row, slice]]:
    """The rows of requests, with their tokens."""
    return [
        (row, slice(first, first + count))
        for row, first, count in zip(batch.rows, batch.firsts, batch.counts, strict=False)
    ]


def _padding(batch: Batch) -> list[int]:
    return [at for at, row in enumerate(batch.inputs) if row == PADDING]


def slot_one_too_far(batch: Batch) -> None:
    for _, span in _rows(batch):
        batch.slots[span] = [slot + 1 for slot in batch.slots[span]]


def chunk_at_offset_zero(batch: Batch) -> None:
    size = batch.block_size
    for row, span in _rows(batch):
        batch.slots[span] = [row.table[p // size] * size + p % size for p in range(len(row.inputs))]


def last_token_not_written(batch: Batch) -> None:
    for _, span in _rows(batch):
        batch.slots[span.stop - 1] = RESERVED_BLOCK * batch.block_size


def block_offset_lost(batch: Batch) -> None:
    size = batch.block_size
    for _, span in _rows(batch):
        batch.slots[span] = [slot // size * size for slot in batch.slots[span]]


def neighbour_written(batch: Batch) -> None:
    """The last token of each row goes to where the first row keeps its first one."""
    for _, span in _rows(batch)[1:]:
        batch.slots[span.stop - 1] = batch.rows[0].table[0] * batch.block_size


def pads_write_last_slot(batch: Batch, slots: int) -> None:
    """As an index of -1 does where indices wrap around."""
    for at in _padding(batch):
        batch.slots[at] = slots - 1


def pads_write_first_row(batch: Batch) -> None:
    for at in _padding(batch):
        batch.slots[at] = batch.slots[0]


def narrow_slots(batch: Batch, slots: int) -> None:
    """Slots in 16 bits, negative ones wrapping around: what 32 bits do to a cache that no test can hold."""
    batch.slots[:] = [((slot + 2**15) % 2**16 - 2**15) % slots for slot in batch.slots]


def kv_len_one_too_long(batch: Batch) -> None:
    """As far as the table reaches."""
    for index, (row, _) in enumerate(_rows(batch)):
        batch.kv_lens[index] = min(row.end + 1, len(row.table) * batch.block_size)


def kv_len_one_too_short(batch: Batch) -> None:
    for index, (row, _) in enumerate(_rows(batch)):
        batch.kv_lens[index] = max(row.end - 1, len(row.inputs))


class StaleRow:
    """A row keeps the table of who stood there in the step before, if that is long enough."""

    def __init__(self) -> None:
        self.before: list[list[int]] = []

    def __call__(self, batch: Batch) -> None:
        told = [list(table) for table in batch.tables]
        for index, old in enumerate(self.before[: len(batch.rows)]):
            if len(old) >= len(told[index]):
                batch.tables[index] = old
        self.before = told


def swapped_rows(batch: Batch) -> None:
    if len(batch.rows) > 1:
        first, second = batch.tables[:2]
        longest = max(len(first), len(second))
        padded = [table + [RESERVED_BLOCK] * (longest - len(table)) for table in (second, first)]
        batch.tables[:2] = padded


def zero_rows_beside_hits(batch: Batch) -> None:
    """With a context somewhere in the batch, rows without one lose their table."""
    if any(row.start for row in batch.rows):
        for index, row in enumerate(batch.rows):
            if not row.start:
                batch.tables[index] = [RESERVED_BLOCK] * len(row.table)


def table_reversed(batch: Batch) -> None:
    for index, row in enumerate(batch.rows):
        batch.tables[index] = list(reversed(row.table))


def last_page_of_first(batch: Batch) -> None:
    """Every row ends with the last page of the first row."""
    for index in range(1, len(batch.rows)):
        batch.tables[index][-1] = batch.tables[0][-1]


def position_one_too_far(batch: Batch) -> None:
    for row, span in _rows(batch):
        if row.start:
            batch.positions[span] = [p + 1 for p in batch.positions[span]]


def positions_from_zero(batch: Batch) -> None:
    for row, span in _rows(batch):
        batch.positions[span] = list(range(len(row.inputs)))


def adapter_ignored(batch: Batch) -> None:
    batch.adapters[:] = [0] * len(batch.adapters)


def adapter_of_first(batch: Batch) -> None:
    batch.adapters[:] = [batch.adapters[0]] * len(batch.adapters)


def inputs_shifted(batch: Batch) -> None:
    for _, span in _rows(batch):
        inputs = batch.inputs[span]
        batch.inputs[span] = [inputs[0], *inputs[:-1]]


def inputs_swapped(batch: Batch) -> None:
    """The last tokens of the first two rows change places."""
    rows = _rows(batch)
    if len(rows) > 1:
        a, b = rows[0][1].stop - 1, rows[1][1].stop - 1
        batch.inputs[a], batch.inputs[b] = batch.inputs[b], batch.inputs[a]


def items_as_tokens(batch: Batch, vocabulary: int) -> None:
    """The placeholder is embedded where the item should be."""
    batch.inputs[:] = [9 if row >= vocabulary else row for row in batch.inputs]


def item_place_off(batch: Batch, vocabulary: int) -> None:
    batch.inputs[:] = [max(row - 1, vocabulary) if row >= vocabulary else row for row in batch.inputs]
