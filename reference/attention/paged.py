"""Paged attention in torch alone: gather the pages of a row, then dense attention over them.

Single-token rows go together, in gathers that are as wide as the longest of them: many small gathers cost several
times more.  But no gather is larger than a cache, where there is one: memory that is touched once is slow memory.
Chunks go one by one: to pad them to each other would cost more than the loop.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from reference.batch import Tables

GATHERED_ELEMENTS = {"cpu": 2**20, "cuda": 2**30}
"""The most elements of keys that are gathered at once, if more than one row is left."""


def attend(queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, scale: float) -> Tensor:
    """See `reference.attention`."""
    attended = torch.empty_like(queries)
    decodes = [row for row, count in enumerate(tables.count_of) if count == 1]
    if decodes:
        at = torch.tensor([tables.first_of[row] for row in decodes], dtype=torch.int64, device=queries.device)
        own = queries[at]
        groups = _groups(decodes, tables, keys)
        parts = own.split([len(rows) for rows in groups])
        outs = [_decode(part, keys, values, tables, rows, scale) for part, rows in zip(parts, groups, strict=True)]
        attended[at] = torch.cat(outs)
    for row, count in enumerate(tables.count_of):
        if count > 1:
            first = tables.first_of[row]
            chunk = slice(first, first + count)
            attended[chunk] = _chunk(queries[chunk], keys, values, tables, row, scale)
    return attended


def _groups(rows: list[int], tables: Tables, keys: Tensor) -> list[list[int]]:
    """The rows in order, cut where their pages would outgrow a gather."""
    most = GATHERED_ELEMENTS[keys.device.type] // (keys.shape[2] * keys.shape[3])
    groups: list[list[int]] = []
    widest = 0
    for row in rows:
        widest = max(widest, tables.kv_len_of[row])
        if not groups or (len(groups[-1]) + 1) * widest > most:
            groups.append([])
            widest = tables.kv_len_of[row]
        groups[-1].append(row)
    return groups


def _decode(queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, rows: list[int], scale: float) -> Tensor:
    """One token of each row.  The heads that share keys stand in for query positions, so that nothing is repeated."""
    block_size, kv_heads, head_size = keys.shape[1:]
    lengths = [tables.kv_len_of[row] for row in rows]
    shortest, longest = min(lengths), max(lengths)
    width = -(-longest // block_size)
    everybody = len(rows) == tables.tables.shape[0]
    index = torch.tensor(rows, dtype=torch.int64, device=keys.device)
    pages = (tables.tables if everybody else tables.tables[index])[:, :width]
    lens = tables.kv_lens if everybody else tables.kv_lens[index]
    k, v = (_gather(cache, pages)[:, :longest] for cache in (keys, values))
    mask = None
    if shortest < longest:
        live = torch.arange(longest, device=keys.device) < lens[:, None]
        mask = live[:, None, None, :]
        # A masked slot still reaches the sum, times zero: NaN in it would stay NaN.  Only behind the shortest.
        dead = ~live[:, shortest:, None, None]
        for gathered in (k, v):
            gathered[:, shortest:].masked_fill_(dead, 0)
    grouped = queries.view(len(rows), kv_heads, -1, head_size)
    out = scaled_dot_product_attention(grouped, k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask, scale=scale)
    return out.reshape(queries.shape)


def _chunk(queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, row: int, scale: float) -> Tensor:
    """Several tokens of one row behind its context; the mask is explicit, because `is_causal` aligns top left."""
    count, heads = queries.shape[:2]
    kv_len = tables.kv_len_of[row]
    pages = tables.tables[row, None, : -(-kv_len // keys.shape[1])]
    k, v = (_gather(cache, pages)[0, :kv_len].transpose(0, 1) for cache in (keys, values))
    mask = torch.ones(count, kv_len, dtype=torch.bool, device=keys.device).tril(kv_len - count)
    q = queries.transpose(0, 1)
    shared = heads != k.shape[0]
    out = scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask, scale=scale, enable_gqa=shared)
    return out[0].transpose(0, 1)


def _gather(cache: Tensor, pages: Tensor) -> Tensor:
    """(rows, pages) of block ids to (rows, slots, kv_heads, head_size), copied."""
    found = cache.index_select(0, pages.flatten())
    return found.view(pages.shape[0], -1, *cache.shape[2:])
