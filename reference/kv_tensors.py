"""The paged KV cache as tensors: keys and values of every layer, in blocks of slots.

A slot is `block * block_size + offset`, in 64 bits: large caches have more than 2**31 elements.  The cache starts
as NaN, so that what nobody wrote shows where somebody reads it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from reference.model_config import ModelConfig
from reference.placement import Placement
from spec.vocabulary import Config


class KVTensors:
    """keys, values: (layers, num_blocks, block_size, kv_heads, head_size)."""

    def __init__(self, model: ModelConfig, config: Config, placement: Placement) -> None:
        shape = (model.layers, config.num_blocks, config.block_size, model.kv_heads, model.head_size)
        self.block_size = config.block_size
        self.num_blocks = config.num_blocks
        self.keys = torch.full(shape, float("nan"), dtype=placement.dtype, device=placement.device)
        self.values = torch.full_like(self.keys, float("nan"))

    def write(self, layer: int, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Stores (tokens, kv_heads, head_size) of a whole batch; `slots` is one int64 a token."""
        for cache, new in ((self.keys, keys), (self.values, values)):
            cache[layer].flatten(0, 1).index_copy_(0, slots, new)

    def read(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of some slots, one row a slot."""
        keys, values = (cache[layer].flatten(0, 1).index_select(0, slots) for cache in (self.keys, self.values))
        return keys, values

    def fill(self, blocks: Sequence[int], value: float) -> None:
        """Overwrites whole blocks, in all layers."""
        index = torch.tensor(blocks, dtype=torch.int64, device=self.keys.device)
        self.keys.index_fill_(1, index, value)
        self.values.index_fill_(1, index, value)
