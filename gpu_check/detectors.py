"""The detectors: what looks on while plans are carried out on tensors.

    poison    a block holds NaN from the moment a plan hands it out as new, until it is written
    written   each slot holds, bit for bit, what the layer wrote there
    owner     the suite's shadow memory, slot by slot: who reads what was whose
    oracle    the numbers against dense attention

Poison never falls on a block when it is freed, which may be hit, and never on a hit.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from gpu_check.criterion import Verdict, bound, judge, sure
from gpu_check.oracle import Dense, Oracle
from reference.batch import Batch, Row
from reference.executor import Executor, Sampling
from spec.observer import Seen
from spec.shadow import Content, Shadow
from spec.vocabulary import Config, Request


class Finding(NamedTuple):
    """What a detector saw: at which request, and what exactly."""

    detector: str
    request_id: str
    message: str

    def __str__(self) -> str:
        return f"{self.detector}: {self.request_id}: {self.message}"


class Truth(NamedTuple):
    """What a grant is about, from the observer.

    text    the text of the request up to the end of the grant, drafts behind the known tokens
    whole   a text that begins with it: the one that the request will come to, where that is known
    """

    seen: Seen
    text: tuple[int, ...]
    drafts: tuple[int, ...]
    whole: tuple[int, ...]

    @property
    def request(self) -> Request:
        return self.seen.request


class OwnerMap:
    """Whose KV each slot holds: `spec.shadow` with slots for blocks."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._shadow = Shadow()

    def clear(self, blocks: tuple[int, ...], block_size: int) -> None:
        """The slots of a block that is handed out as new hold nothing."""
        for block in blocks:
            for slot in range(block * block_size, (block + 1) * block_size):
                self._shadow.clear(slot)

    def follow(self, batch: Batch, truths: dict[str, Truth]) -> Iterator[Finding]:
        """All writes of a step, then all of its reads, as the kernels are told of them."""
        views = {row.request_id: self._slot_view(truths[row.request_id]) for row in batch.rows}
        for row, first in zip(batch.rows, batch.firsts, strict=False):
            for position in range(row.start, row.end):
                content = self._content(row, position, views, truths)
                self._shadow.write(batch.slots[first + position - row.start], content)
        for slot in batch.slots[sum(len(row.inputs) for row in batch.rows) :]:
            self._shadow.clear(slot)  # padding leaves nothing that anybody may rely on
        for row, table, kv_len in zip(batch.rows, batch.tables, batch.kv_lens, strict=False):
            yield from self._reads(row, table, kv_len, batch.block_size, views, truths)

    def _reads(
        self,
        row: Row,
        table: list[int],
        kv_len: int,
        block_size: int,
        views: dict[str, Seen],
        truths: dict[str, Truth],
    ) -> Iterator[Finding]:
        for position in range(min(kv_len, row.end)):
            slot = table[position // block_size] * block_size + position % block_size
            found = self._shadow.read(slot)
            if found != self._content(row, position, views, truths):
                held = "foreign KV" if found.letters else "nothing"
                yield Finding("owner", row.request_id, f"position {position} reads slot {slot}, which holds {held}")
                return

    def _slot_view(self, truth: Truth) -> Seen:
        """The request as seen with blocks of one slot."""
        view = Seen(truth.request, self._config)
        view.tokens, view.known = truth.seen.tokens, truth.seen.known
        return view

    def _content(self, row: Row, position: int, views: dict[str, Seen], truths: dict[str, Truth]) -> Content:
        truth = truths[row.request_id]
        return views[row.request_id].content(position, 1, len(truth.text), truth.drafts)


class Numbers:
    """The oracle beside the outputs of each layer and the logits; also keeps how close they came to the bound."""

    def __init__(self, executor: Executor) -> None:
        model = executor.model
        self._dtype = model.placement.dtype
        self.dtype_name = str(self._dtype).removeprefix("torch.")
        self.exact = Oracle(model.config, model.weights, exact=True)
        self.dense = Oracle(model.config, model.weights, exact=False)
        self.largest_share = 0.0
        self.tokens_compared = 0
        self.tokens_unsure = 0

    def attended(self, layers: list[Tensor], batch: Batch, truths: dict[str, Truth]) -> Iterator[Finding]:
        """Every position that the step computed, layer by layer."""
        for row, first in zip(batch.rows, batch.firsts, strict=False):
            truth = truths[row.request_id]
            exact, dense = self._texts(truth)
            so_far, span = slice(len(truth.text)), slice(row.start, row.end)
            for index, output in enumerate(layers):
                limit = bound(
                    dense.attended[index][so_far],
                    exact.attended[index][so_far],
                    exact.values[index][so_far],
                    self._dtype,
                )
                own = output[first : first + len(row.inputs)]
                yield from self._told(row, f"layer {index}", judge(own, exact.attended[index][span], limit))

    def sampled(self, sampled: dict[str, Sampling], batch: Batch, truths: dict[str, Truth]) -> Iterator[Finding]:
        """The logits of every sampling position, and their best tokens where the oracle is sure."""
        for row in batch.rows:
            if not row.sampling:
                continue
            truth = truths[row.request_id]
            exact, dense = self._texts(truth)
            so_far = slice(len(truth.text))
            limit = bound(dense.logits[so_far], exact.logits[so_far], exact.logits[so_far], self._dtype)
            expected = exact.logits[row.end - row.sampling : row.end]
            logits = sampled[row.request_id].logits
            yield from self._told(row, "logits", judge(logits, expected, limit))
            certain = sure(expected, limit)
            self.tokens_compared += int(certain.sum())
            self.tokens_unsure += int((~certain).sum())
            if (logits.argmax(-1) != expected.argmax(-1))[certain].any():
                yield Finding("oracle", row.request_id, f"another token at position {row.end - row.sampling}")

    def _texts(self, truth: Truth) -> tuple[Dense, Dense]:
        return self.exact.run(truth.request, truth.whole), self.dense.run(truth.request, truth.whole)

    def _told(self, row: Row, where: str, verdict: Verdict) -> Iterator[Finding]:
        if not verdict.holds:
            text = f"{where}, positions {row.start}..{row.end}: off by {verdict.error:.3g}, bound {verdict.bound:.3g}"
            yield Finding("oracle", row.request_id, text)
        else:
            self.largest_share = max(self.largest_share, verdict.share)


class LayerRecord:
    """Keeps what each layer wrote and gave, as the executor's watch."""

    def __init__(self) -> None:
        self.written: list[tuple[Tensor, Tensor]] = []
        self.attended: list[Tensor] = []

    def layer(self, index: int, keys: Tensor, values: Tensor, attended: Tensor) -> None:
        self.written.append((keys, values))
        self.attended.append(attended)

    def clear(self) -> None:
        self.written.clear()
        self.attended.clear()


def not_finite(layers: list[Tensor], batch: Batch) -> Iterator[Finding]:
    """Rows of requests, padding aside, in which something that is not a number came out."""
    ends = list(accumulate(batch.counts))
    for row, first, end in zip(batch.rows, batch.firsts, ends, strict=False):
        for index, output in enumerate(layers):
            if not torch.isfinite(output[first:end]).all():
                yield Finding("poison", row.request_id, f"layer {index} is not finite at {row.start}..{row.end}")
                break


def _bits(tensor: Tensor) -> Tensor:
    """The same memory as whole numbers, so that NaN equals itself."""
    return tensor.contiguous().view({8: torch.int64, 4: torch.int32, 2: torch.int16}[tensor.element_size()])


def not_written(executor: Executor, record: LayerRecord, batch: Batch) -> Iterator[Finding]:
    """Slots of requests that do not hold what was to be written, after the whole step; where each must be is asked
    of the rows, not of what the kernels were told."""
    size = executor.config.block_size
    for row, first in zip(batch.rows, batch.firsts, strict=False):
        slots = [row.table[p // size] * size + p % size for p in range(row.start, row.end)]
        index = torch.tensor(slots, dtype=torch.int64, device=executor.cache.keys.device)
        for layer, (keys, values) in enumerate(record.written):
            stored = executor.cache.read(layer, index)
            due = (keys[first : first + len(slots)], values[first : first + len(slots)])
            if not all(torch.equal(_bits(found), _bits(wanted)) for found, wanted in zip(stored, due, strict=True)):
                yield Finding("written", row.request_id, f"layer {layer}: slots of {row.start}..{row.end} differ")
                break
