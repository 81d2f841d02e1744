"""Attention over paged keys and values: one function, several ways to compute it.

    paged    torch alone; CPU and CUDA, every type: the reference
    triton   kernels for CUDA: split-KV decode and chunks

Each takes queries (tokens, heads, head_size), the keys and values of one layer (num_blocks, block_size, kv_heads,
head_size) and the tables of the batch, and returns (tokens, heads, head_size).  The last token of a row sees
`kv_len` positions, the one before it one less: the mask is aligned lower right.
"""

from __future__ import annotations

import importlib
from typing import Protocol

from torch import Tensor

from reference.batch import Tables
from reference.model_config import BadModel
from reference.placement import installed


class Attention(Protocol):
    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor, tables: Tables, scale: float) -> Tensor: ...


ATTENTIONS = {"paged": "reference.attention.paged", "triton": "reference.attention.triton_paged"}
"""Name to module, which has the function `attend`."""


def load(name: str) -> Attention:
    """The function behind `--attention NAME`; raises BadModel where it is unknown or cannot be had here."""
    if name not in ATTENTIONS:
        raise BadModel(f"--attention {name}: not one of {', '.join(ATTENTIONS)}")
    if name == "triton" and not installed("triton"):
        raise BadModel(f"--attention {name}: triton is not installed: pip install 'schedspec[triton]'")
    attend: Attention = importlib.import_module(ATTENTIONS[name]).attend
    return attend
