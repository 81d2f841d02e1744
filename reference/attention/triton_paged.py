"""Paged attention as Triton kernels: split-KV decode for single tokens, and a kernel for chunks.

A split is a fixed number of positions, whatever the batch, and splits are merged in order: the result of a request
does not depend on who else is served.  Slots are numbered in 64 bits.  Dead slots are never loaded.

On the CPU the kernels run in Triton's interpreter, for tiny shapes (TRITON_INTERPRET=1, set before the import).
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from reference.batch import Tables

SPLIT = 512
"""Positions of one split of a decode."""

CHUNK_TOKENS = 16
"""Tokens of a chunk that share one program."""


def attend(queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, scale: float) -> Tensor:
    """See `reference.attention`."""
    out = torch.empty_like(queries)
    decodes = [row for row, count in enumerate(tables.count_of) if count == 1]
    chunks = [row for row, count in enumerate(tables.count_of) if count > 1]
    if decodes:
        _decode(queries, keys, values, tables, decodes, scale, out)
    if chunks:
        _chunks(queries, keys, values, tables, chunks, scale, out)
    return out


def _decode(
    queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, rows: list[int], scale: float, out: Tensor
) -> None:
    heads, head_size = queries.shape[1:]
    splits = -(-max(tables.kv_len_of[row] for row in rows) // SPLIT)
    wide = torch.float64 if queries.dtype == torch.float64 else torch.float32
    parts = torch.empty(len(rows), splits, heads, head_size, dtype=wide, device=queries.device)
    peaks, sums = (torch.empty(len(rows), splits, heads, dtype=wide, device=queries.device) for _ in range(2))
    at = _index(rows, queries)
    first = _index([tables.first_of[row] for row in rows], queries)
    sizes = _sizes(keys, heads, 1)
    kv_heads = keys.shape[2]
    _decode_splits[(len(rows), kv_heads, splits)](
        queries, keys, values, tables.tables, tables.kv_lens, at, first, parts, peaks, sums,
        tables.tables.shape[1], splits, scale, **sizes, num_warps=4, num_stages=3,
    )  # fmt: skip
    _merge_splits[(len(rows), heads)](
        parts, peaks, sums, tables.kv_lens, at, first, out, splits,
        HEADS=heads, SIZE=head_size, SIZE_PADDED=sizes["SIZE_PADDED"], SPLIT=SPLIT, num_warps=2,
    )  # fmt: skip


def _chunks(
    queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, rows: list[int], scale: float, out: Tensor
) -> None:
    tiles = [
        (row, tables.first_of[row] + t, tables.kv_len_of[row] - tables.count_of[row] + t, tables.count_of[row] - t)
        for row in rows
        for t in range(0, tables.count_of[row], CHUNK_TOKENS)
    ]
    columns = [_index(list(column), queries) for column in zip(*tiles, strict=True)]
    _chunk_tiles[(len(tiles), keys.shape[2])](
        queries, keys, values, tables.tables, *columns, out,
        tables.tables.shape[1], scale, **_sizes(keys, queries.shape[1], CHUNK_TOKENS), num_warps=4, num_stages=2,
    )  # fmt: skip


def _index(numbers: list[int], like: Tensor) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device=like.device)


def _sizes(keys: Tensor, heads: int, tokens: int) -> dict[str, Any]:
    """What the kernels are compiled for; a matrix product has at least 16 rows."""
    block_size, kv_heads, head_size = keys.shape[1:]
    return {
        "PAGE": block_size,
        "KV_HEADS": kv_heads,
        "GROUP": heads // kv_heads,
        "SIZE": head_size,
        "SIZE_PADDED": max(16, triton.next_power_of_2(head_size)),
        "TOKENS": tokens,
        "ROWS": max(16, triton.next_power_of_2(tokens * heads // kv_heads)),
        "TILE": 32 if head_size > 128 else 64,
        "SPAN": SPLIT,
        "WIDE": keys.dtype == torch.float64,
    }


@triton.jit
def _product(a, b, WIDE: tl.constexpr):
    """(m, k) by (k, n); tensor cores know no float64."""
    if WIDE:
        return tl.sum(a[:, :, None] * b[None, :, :], axis=1)
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def _span(
    q, best, total, acc, keys, values, table, head, begin, end, limits, scale,
    PAGE: tl.constexpr, KV_HEADS: tl.constexpr, SIZE: tl.constexpr, SIZE_PADDED: tl.constexpr,
    TILE: tl.constexpr, SPAN: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One span of positions: running maximum, sum and output of each row; a row sees positions up to its limit."""
    column = tl.arange(0, SIZE_PADDED)
    for step in range(0, SPAN, TILE):
        position = begin + step + tl.arange(0, TILE)
        live = position < end
        page = tl.load(table + position // PAGE, mask=live, other=0).to(tl.int64)
        slot = page * PAGE + position % PAGE
        offset = (slot * KV_HEADS + head)[:, None] * SIZE + column[None, :]
        loaded = live[:, None] & (column < SIZE)[None, :]
        k = tl.load(keys + offset, mask=loaded, other=0.0)
        v = tl.load(values + offset, mask=loaded, other=0.0)
        score = _product(q, tl.trans(k), WIDE) * scale
        score = tl.where(live[None, :] & (position[None, :] <= limits[:, None]), score, float("-inf"))
        peak = tl.maximum(best, tl.max(score, 1))
        weight = tl.exp(score - peak[:, None])
        shrink = tl.exp(best - peak)
        total = total * shrink + tl.sum(weight, 1)
        acc = acc * shrink[:, None] + _product(weight.to(v.dtype), v, WIDE)
        best = peak
    return best, total, acc


@triton.jit
def _decode_splits(
    queries, keys, values, tables, kv_lens, rows, firsts, parts, peaks, sums, width, splits, scale,
    PAGE: tl.constexpr, KV_HEADS: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr, SIZE_PADDED: tl.constexpr,
    TOKENS: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, SPAN: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """One split of one row and one head of keys; what lies behind the row's length is stored and never merged."""
    item, head, split = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    row, first = tl.load(rows + item), tl.load(firsts + item)
    kv_len = tl.load(kv_lens + row)
    lane, column = tl.arange(0, ROWS), tl.arange(0, SIZE_PADDED)
    inside = (lane < GROUP)[:, None] & (column < SIZE)[None, :]
    query_head = head * GROUP + lane
    at = (first * KV_HEADS * GROUP + query_head)[:, None] * SIZE + column[None, :]
    q = tl.load(queries + at, mask=inside, other=0.0)
    sum_type = tl.float64 if WIDE else tl.float32
    best = tl.full((ROWS,), float("-inf"), sum_type)
    total = tl.zeros((ROWS,), sum_type)
    acc = tl.zeros((ROWS, SIZE_PADDED), sum_type)
    begin = split * SPAN
    limits = tl.zeros((ROWS,), tl.int64) + kv_len - 1
    best, total, acc = _span(
        q, best, total, acc, keys, values, tables + row * width, head, begin, kv_len, limits, scale,
        PAGE, KV_HEADS, SIZE, SIZE_PADDED, TILE, SPAN, WIDE,
    )  # fmt: skip
    part = (item * splits + split) * KV_HEADS * GROUP + query_head
    tl.store(parts + part[:, None] * SIZE + column[None, :], acc, mask=inside)
    tl.store(peaks + part, best, mask=lane < GROUP)
    tl.store(sums + part, total, mask=lane < GROUP)


@triton.jit
def _merge_splits(
    parts, peaks, sums, kv_lens, rows, firsts, out, splits,
    HEADS: tl.constexpr, SIZE: tl.constexpr, SIZE_PADDED: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """The splits of one row and one query head, in order."""
    item, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    row, first = tl.load(rows + item), tl.load(firsts + item)
    count = (tl.load(kv_lens + row) + SPLIT - 1) // SPLIT
    column = tl.arange(0, SIZE_PADDED)
    inside = column < SIZE
    at = item * splits * HEADS + head
    best, total = tl.load(peaks + at), tl.load(sums + at)
    acc = tl.load(parts + at * SIZE + column, mask=inside, other=0.0)
    split = 1
    while split < count:
        at += HEADS
        other = tl.load(peaks + at)
        peak = tl.maximum(best, other)
        mine, theirs = tl.exp(best - peak), tl.exp(other - peak)
        total = total * mine + tl.load(sums + at) * theirs
        acc = acc * mine + tl.load(parts + at * SIZE + column, mask=inside, other=0.0) * theirs
        best = peak
        split += 1
    tl.store(out + (first * HEADS + head) * SIZE + column, (acc / total).to(out.dtype.element_ty), mask=inside)


@triton.jit
def _chunk_tiles(
    queries, keys, values, tables, rows, firsts, positions, counts, out, width, scale,
    PAGE: tl.constexpr, KV_HEADS: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr, SIZE_PADDED: tl.constexpr,
    TOKENS: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr, SPAN: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A few tokens of one chunk and the query heads of one head of keys, over everything that they see."""
    tile, head = tl.program_id(0), tl.program_id(1)
    row, first, position, count = (
        tl.load(rows + tile), tl.load(firsts + tile), tl.load(positions + tile), tl.load(counts + tile)
    )  # fmt: skip
    lane, column = tl.arange(0, ROWS), tl.arange(0, SIZE_PADDED)
    token = lane // GROUP
    live = (token < TOKENS) & (token < count)
    inside = live[:, None] & (column < SIZE)[None, :]
    query_row = (first + token) * KV_HEADS * GROUP + head * GROUP + lane % GROUP
    at = query_row[:, None] * SIZE + column[None, :]
    q = tl.load(queries + at, mask=inside, other=0.0)
    sum_type = tl.float64 if WIDE else tl.float32
    best = tl.full((ROWS,), float("-inf"), sum_type)
    total = tl.zeros((ROWS,), sum_type)
    acc = tl.zeros((ROWS, SIZE_PADDED), sum_type)
    end = position + tl.minimum(count, TOKENS)
    begin = end * 0
    while begin < end:
        best, total, acc = _span(
            q, best, total, acc, keys, values, tables + row * width, head, begin, end, position + token, scale,
            PAGE, KV_HEADS, SIZE, SIZE_PADDED, TILE, SPAN, WIDE,
        )  # fmt: skip
        begin += SPAN
    tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty), mask=inside)
