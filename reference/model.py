"""The model, run over a batch with paged KV.

In each layer the keys and values of the whole batch are written before any of its attention reads: a scheduler may
let one request hit a block that another one fills in the same step (CACHE-7).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

from reference.attention import Attention
from reference.batch import PADDING, Batch, Tables
from reference.kv_tensors import KVTensors
from reference.model_config import ModelConfig
from reference.placement import Placement
from reference.weights import Layer, Weights, random_weights


class Watch(Protocol):
    """Who looks on while a step runs."""

    def layer(self, index: int, keys: Tensor, values: Tensor, attended: Tensor) -> None:
        """After the attention of a layer: what was to be written, and what came out, one row a token."""


class Model:
    """A model on a device.  Raises BadModel for sizes that do not fit each other."""

    def __init__(self, config: ModelConfig, placement: Placement) -> None:
        self.config = config
        self.placement = placement
        self.weights: Weights = random_weights(config).cast(placement.device, placement.dtype)
        half = torch.arange(0, config.head_size, 2, dtype=torch.float64, device=placement.device)
        self._frequencies = config.rope_theta ** (-half / config.head_size)

    def input_of_token(self, token: int) -> int:
        """The embedding row of a token; ids beyond the vocabulary wrap around."""
        return token % self.config.vocabulary

    def input_of_item(self, content: int, place: int) -> int:
        """The embedding row of one place in an encoder item."""
        return self.config.vocabulary + (37 * content + place) % self.config.item_rows

    def adapter_row(self, lora_id: int) -> int:
        return 0 if lora_id == 0 else 1 + (lora_id - 1) % self.config.adapter_rows

    def forward(
        self, batch: Batch, cache: KVTensors, attend: Attention, rows: list[int], watch: Watch | None = None
    ) -> Tensor:
        """Runs a batch; the logits (len(rows), vocabulary) of the tokens `rows` of it."""
        device = self.placement.device
        tables = Tables.of(batch, device)
        slots = torch.tensor(batch.slots, dtype=torch.int64, device=device)
        angles = torch.tensor(batch.positions, dtype=torch.float64, device=device)[:, None] * self._frequencies
        turn = (angles.cos().to(self.placement.accumulate), angles.sin().to(self.placement.accumulate))
        x = self._embed(batch)
        for index, layer in enumerate(self.weights.layers):
            q, k, v = self._project(layer, self._norm(x, layer.attention_norm), turn)
            cache.write(index, slots, k, v)
            attended = attend(q, cache.keys[index], cache.values[index], tables, self.config.head_size**-0.5)
            if watch is not None:
                watch.layer(index, k, v, attended)
            x = x + linear(attended.flatten(1), layer.output)
            h = self._norm(x, layer.ffn_norm)
            x = x + linear(silu(linear(h, layer.gate)) * linear(h, layer.up), layer.down)
        sampling = torch.tensor(rows, dtype=torch.int64, device=device)
        return linear(self._norm(x[sampling], self.weights.norm), self.weights.head)

    def _embed(self, batch: Batch) -> Tensor:
        device = self.placement.device
        inputs = torch.tensor(batch.inputs, dtype=torch.int64, device=device)
        adapters = torch.tensor(batch.adapters, dtype=torch.int64, device=device)
        x = self.weights.embedding[inputs.clamp(min=0)] + self.weights.adapters[adapters]
        return x.masked_fill((inputs == PADDING)[:, None], float("nan"))

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        wide = x.to(self.placement.accumulate)
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.config.norm_eps)
        return (wide * scale).to(x.dtype) * weight

    def _project(self, layer: Layer, h: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        size = self.config.head_size
        q, k, v = (linear(h, matrix).unflatten(-1, (-1, size)) for matrix in (layer.query, layer.key, layer.value))
        return self._rotate(q, turn), self._rotate(k, turn), v

    def _rotate(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        """Turns the pairs (i, i + head_size / 2) of each head by the angle of its position."""
        cos, sin = (part[:, None, :] for part in turn)
        low, high = x.to(self.placement.accumulate).chunk(2, -1)
        return torch.cat((low * cos - high * sin, high * cos + low * sin), -1).to(x.dtype)
