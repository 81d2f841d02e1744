"""Faults in what the kernels do.  A write fault stands in for `KVTensors.write`, an attention fault for `attend`."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from reference.batch import Tables
from reference.executor import Executor

# --- writes ----------------------------------------------------------------------------------------


def nothing_written(executor: Executor) -> None:
    """Not in the last layer."""
    write, last = executor.cache.write, executor.model.config.layers - 1

    def faulty(layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        if layer != last:
            write(layer, slots, keys, values)

    executor.cache.write = faulty  # type: ignore[method-assign]


def values_not_written(executor: Executor) -> None:
    cache = executor.cache

    def faulty(layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        cache.keys[layer].flatten(0, 1).index_copy_(0, slots, keys)

    cache.write = faulty  # type: ignore[method-assign]


def layer_lost(executor: Executor) -> None:
    write = executor.cache.write
    executor.cache.write = lambda layer, slots, keys, values: write(0, slots, keys, values)  # type: ignore[method-assign]


def keys_and_values_swapped(executor: Executor) -> None:
    write = executor.cache.write
    executor.cache.write = lambda layer, slots, keys, values: write(layer, slots, values, keys)  # type: ignore[method-assign]


def written_in_half(executor: Executor) -> None:
    write = executor.cache.write

    def faulty(layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        write(layer, slots, keys.half().to(keys.dtype), values.half().to(values.dtype))

    executor.cache.write = faulty  # type: ignore[method-assign]


def written_row_by_row(executor: Executor) -> None:
    """Each row writes just before it reads, the last row first: a hit of the same step reads too early."""
    write, attend = executor.cache.write, executor.attend
    waiting: list[tuple[int, Tensor, Tensor, Tensor]] = []

    def keep(layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        waiting.append((layer, slots, keys, values))

    def one_by_one(queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, scale: float) -> Tensor:
        layer, slots, new_keys, new_values = waiting.pop()
        out = torch.empty_like(queries)
        for row in reversed(range(len(tables.count_of))):
            span = slice(tables.first_of[row], tables.first_of[row] + tables.count_of[row])
            write(layer, slots[span], new_keys[span], new_values[span])
            out[span] = attend(queries[span], keys, values, one_row(tables, row), scale)
        return out

    executor.cache.write, executor.attend = keep, one_by_one  # type: ignore[method-assign]


def one_row(tables: Tables, row: int) -> Tables:
    """The tables of one row alone."""
    pick = slice(row, row + 1)
    return Tables(tables.tables[pick], tables.kv_lens[pick], tables.kv_len_of[pick], tables.count_of[pick], (0,))


# --- attention ---------------------------------------------------------------------------------------


class Dials:
    """What a faulty attention does otherwise; the sound one is all defaults."""

    def __init__(
        self,
        *,
        mask: str = "lower right",
        zeroed: bool = True,
        context: bool = True,
        grouped: bool = True,
        scale: float = 1.0,
        whole_pages: bool = False,
        half: bool = False,
        merged: bool = False,
    ) -> None:
        self.mask = mask
        self.zeroed = zeroed
        self.context = context
        self.grouped = grouped
        self.scale = scale
        self.whole_pages = whole_pages
        self.half = half
        self.merged = merged

    def __call__(self, executor: Executor) -> None:
        executor.attend = self.attend

    def attend(self, queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, scale: float) -> Tensor:
        """Row by row, with pages padded to those of the widest row, as a kernel for whole batches sees them."""
        out = torch.empty_like(queries)
        for row, (first, count) in enumerate(zip(tables.first_of, tables.count_of, strict=True)):
            span = slice(first, first + count)
            out[span] = self._row(queries[span], keys, values, tables, row, scale * self.scale)
        return out

    def _row(self, queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, row: int, scale: float) -> Tensor:
        count, kv_len, size = len(queries), tables.kv_len_of[row], keys.shape[1]
        k, v = (cache[tables.tables[row]].flatten(0, 1).transpose(0, 1) for cache in (keys, values))
        live = self._mask(count, kv_len, size, k.shape[1]).to(k.device)
        if self.zeroed:
            k, v = (part.masked_fill(~live.any(0)[None, :, None], 0) for part in (k, v))
        order = torch.arange(queries.shape[1], device=k.device)
        of_head = order // (len(order) // len(k)) if self.grouped else order % len(k)
        q = queries.transpose(0, 1)
        dtype = torch.bfloat16 if self.half else q.dtype
        q, k, v = (part.to(dtype) for part in (q, k[of_head], v[of_head]))
        if self.merged and kv_len > 2:
            out = self._merge(q, k, v, live, scale, kv_len // 2)
        else:
            out = scaled_dot_product_attention(q, k, v, attn_mask=live, scale=scale)
        return out.transpose(0, 1).to(queries.dtype)

    def _mask(self, count: int, kv_len: int, size: int, width: int) -> Tensor:
        at, slot = torch.arange(count)[:, None], torch.arange(width)[None, :]
        seen = {"lower right": slot <= at + kv_len - count, "top left": slot <= at, "none": slot < kv_len}[self.mask]
        if not self.context:
            seen = seen & (slot >= kv_len - count)
        if self.whole_pages and kv_len >= size:
            seen = seen & (slot < max(kv_len // size * size, 1))
            seen[:, 0] = True
        return seen & (slot < kv_len)

    def _merge(self, q: Tensor, k: Tensor, v: Tensor, live: Tensor, scale: float, middle: int) -> Tensor:
        """Two splits, averaged without their weights."""
        halves = [slice(0, middle), slice(middle, None)]
        outs = [
            scaled_dot_product_attention(q, k[:, half], v[:, half], attn_mask=live[:, half], scale=scale).nan_to_num()
            for half in halves
        ]
        return sum(outs[1:], outs[0]) / 2
