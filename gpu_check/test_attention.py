"""The attention functions by themselves: N(0, 1) data, lengths around block boundaries, public bugs by name.

Triton's kernels run here too: on CUDA, or where triton is installed and TRITON_INTERPRET=1 is set.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gpu_check.criterion import bound, judge
from gpu_check.runs import Setting
from reference.attention import ATTENTIONS, Attention, load
from reference.batch import Tables
from reference.placement import installed

LENGTHS = {1: (1, 2, 5), 16: (1, 15, 16, 17, 33), 32: (31, 32, 33, 65), 128: (127, 128, 129)}
SHAPES = [(4, 4, 40), (8, 2, 64), (9, 3, 80), (8, 2, 128), (9, 3, 256)]


class Case:
    """Rows of (tokens, kv_len) over shuffled pages of one layer; every slot that is not live holds `garbage`."""

    def __init__(
        self,
        rows: Sequence[tuple[int, int]],
        block_size: int,
        shape: tuple[int, int, int],
        setting: Setting,
        garbage: float = float("nan"),
    ) -> None:
        heads, kv_heads, size = shape
        device, dtype = torch.device(setting.device), getattr(torch, setting.dtype)
        random = torch.Generator().manual_seed(len(rows) * size + block_size)

        def normal(*sizes: int) -> Tensor:
            return torch.randn(sizes, generator=random).to(device=device, dtype=dtype)

        widths = [-(-kv_len // block_size) for _, kv_len in rows]
        order = torch.randperm(sum(widths), generator=random) + 1
        self.pages = [part.tolist() for part in order.split(widths)]
        filled = [pages + [0] * (max(widths) - len(pages)) for pages in self.pages]
        counts, lens = [count for count, _ in rows], [kv_len for _, kv_len in rows]
        firsts = [sum(counts[:row]) for row in range(len(rows))]
        index = torch.tensor(filled, device=device)
        self.tables = Tables(index, torch.tensor(lens, device=device), tuple(lens), tuple(counts), tuple(firsts))
        self.keys = torch.full((sum(widths) + 1, block_size, kv_heads, size), garbage, device=device, dtype=dtype)
        self.values = self.keys.clone()
        self.queries = normal(sum(counts), heads, size)
        self.texts: list[tuple[Tensor, Tensor]] = []
        for pages, kv_len in zip(self.pages, lens, strict=True):
            slots = [pages[p // block_size] * block_size + p % block_size for p in range(kv_len)]
            text = (normal(kv_len, kv_heads, size), normal(kv_len, kv_heads, size))
            for cache, part in zip((self.keys, self.values), text, strict=True):
                cache.flatten(0, 1)[slots] = part
            self.texts.append(text)

    def run(self, attend: Attention) -> Tensor:
        return attend(self.queries, self.keys, self.values, self.tables, self.queries.shape[-1] ** -0.5)

    def check(self, attend: Attention) -> None:
        """Every row within the bound of the criterion."""
        out = self.run(attend)
        for row, (keys, values) in enumerate(self.texts):
            first, count = self.tables.first_of[row], self.tables.count_of[row]
            q = self.queries[first : first + count]
            exact, dense = explicit(q.double(), keys.double(), values.double()), torch_dense(q, keys, values)
            verdict = judge(out[first : first + count], exact, bound(dense, exact, values, q.dtype))
            assert verdict.holds, f"row {row}: off by {verdict.error:.3g}, bound {verdict.bound:.3g}"


def seen(count: int, kv_len: int, device: torch.device) -> Tensor:
    """Which positions each of the last `count` tokens sees."""
    at = torch.arange(kv_len - count, kv_len, device=device)
    return torch.arange(kv_len, device=device)[None, :] <= at[:, None]


def explicit(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """An explicit softmax, in the type of what it is given."""
    shared = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
    scores = torch.einsum("qhd,khd->hqk", q, k) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~seen(len(q), len(k), q.device), float("-inf"))
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)


def torch_dense(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """torch's own dense attention."""
    parts = [part.transpose(0, 1)[None] for part in (q, k, v)]
    mask = seen(len(q), len(k), q.device)
    found = torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=mask, enable_gqa=True)
    return found[0].transpose(0, 1)


@pytest.fixture(params=sorted(ATTENTIONS))
def attend(request: pytest.FixtureRequest, setting: Setting, dtype: str) -> Attention:
    name: str = request.param
    if name == "triton" and not installed("triton"):
        pytest.skip("triton is not installed: pip install 'schedspec[triton]'")
    if name == "triton" and setting.device == "cpu":
        if os.environ.get("TRITON_INTERPRET") != "1":
            pytest.skip("on the CPU triton needs TRITON_INTERPRET=1")
        if dtype == "bfloat16":
            pytest.skip("Triton's interpreter multiplies the bit patterns of bfloat16")
    return load(name)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("block_size", LENGTHS)
def test_decodes_and_chunks(
    block_size: int, shape: tuple[int, int, int], dtype: str, attend: Attention, setting: Setting
) -> None:
    """Single tokens and chunks in one batch, every length beside a boundary; all dead slots are NaN."""
    rows = [(1, kv_len) for kv_len in LENGTHS[block_size]]
    rows += [(min(kv_len, 7), kv_len) for kv_len in LENGTHS[block_size]]
    Case(rows, block_size, shape, replace(setting, dtype=dtype)).check(attend)


def test_a_prompt_longer_than_a_tile(dtype: str, attend: Attention, setting: Setting) -> None:
    Case([(37, 37), (20, 50), (1, 3)], 16, (8, 2, 64), replace(setting, dtype=dtype)).check(attend)


def test_more_than_one_split(dtype: str, attend: Attention, setting: Setting) -> None:
    Case([(1, 700), (1, 3), (2, 530)], 16, (4, 2, 16), replace(setting, dtype=dtype)).check(attend)


@pytest.mark.parametrize("garbage", [float("nan"), float("inf"), 1e4])
def test_garbage_in_dead_slots(garbage: float, dtype: str, attend: Attention, setting: Setting) -> None:
    """vllm #641, #57158, flashinfer #941: the tail of a page, and the page that padding points to."""
    rows = [(1, 3), (1, 17), (1, 40), (5, 21)]
    Case(rows, 16, (8, 2, 64), replace(setting, dtype=dtype), garbage=garbage).check(attend)


def test_two_fills_give_the_same_bits(dtype: str, attend: Attention, setting: Setting) -> None:
    """Whatever dead slots hold, nothing of it is in the result."""
    rows, chosen = [(1, 3), (1, 17), (1, 40), (5, 21)], replace(setting, dtype=dtype)
    outs = [Case(rows, 16, (8, 2, 64), chosen, garbage=fill).run(attend) for fill in (0.0, 77.0)]
    assert torch.equal(outs[0], outs[1])


def test_a_context_is_attended_to(dtype: str, attend: Attention, setting: Setting) -> None:
    """xllm #2161: behind a hit, a prompt attends to its context, not only to its own tokens."""
    Case([(3, 35), (4, 20)], 16, (8, 2, 64), replace(setting, dtype=dtype)).check(attend)


def test_batch_of_triton_does_not_matter(dtype: str, setting: Setting, attend: Attention) -> None:
    """vllm #39146: with fixed splits, a row alone and in a batch are the same bits."""
    if "triton" not in attend.__module__:
        pytest.skip("the kernels of torch choose by shape")
    whole = Case([(1, 600), (1, 3), (1, 40), (5, 21)], 16, (8, 2, 64), replace(setting, dtype=dtype))
    together = whole.run(attend)
    for row, first in enumerate(whole.tables.first_of):
        count, pick = whole.tables.count_of[row], slice(row, row + 1)
        tables = Tables(
            whole.tables.tables[pick],
            whole.tables.kv_lens[pick],
            whole.tables.kv_len_of[pick],
            whole.tables.count_of[pick],
            (0,),
        )
        queries = whole.queries[first : first + count].contiguous()
        alone = attend(queries, whole.keys, whole.values, tables, queries.shape[-1] ** -0.5)
        assert torch.equal(alone, together[first : first + count])


def test_a_cache_beyond_32_bits(dtype: str, attend: Attention, setting: Setting) -> None:
    """vllm #50427: pages whose elements are numbered beyond 2**31; needs a device with room for it."""
    if setting.device == "cpu" or dtype not in ("bfloat16", "float16"):
        pytest.skip("only on CUDA, in two bytes: the cache takes 2 x 4.3 GB")
    case = Case([(1, 40), (5, 33)], 16, (8, 8, 128), replace(setting, dtype=dtype))
    pool = 2**31 // case.keys[0].numel() + 64
    move = pool - len(case.keys)
    for name in ("keys", "values"):
        small = getattr(case, name)
        large = torch.empty(pool, *small.shape[1:], dtype=small.dtype, device=small.device)
        large[move:] = small
        setattr(case, name, large)
    case.tables = replace(case.tables, tables=case.tables.tables + move)
    case.check(attend)
