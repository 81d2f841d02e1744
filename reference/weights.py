"""Seeded random weights of the model.

Scaled so that activations stay near N(0, 1): errors are then comparable between layers.  One embedding table
serves tokens and encoder items; an adapter adds a row of its own to every embedding, so that it changes all KV.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from reference.model_config import ModelConfig, check_model


class Layer(NamedTuple):
    """One decoder layer; matrices are (out, in), as torch's `linear` takes them."""

    attention_norm: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    ffn_norm: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor

    def cast(self, device: torch.device, dtype: torch.dtype) -> Layer:
        return Layer(*(tensor.to(device=device, dtype=dtype) for tensor in self))


class Weights(NamedTuple):
    """The whole model.

    embedding   (vocabulary + item_rows, hidden)
    adapters    (1 + adapter_rows, hidden); row 0, the base model, is zero
    """

    embedding: Tensor
    adapters: Tensor
    layers: tuple[Layer, ...]
    norm: Tensor
    head: Tensor

    def cast(self, device: torch.device, dtype: torch.dtype) -> Weights:
        """The same weights elsewhere, or rounded to another type."""
        first, adapters, layers, norm, head = self
        moved = [tensor.to(device=device, dtype=dtype) for tensor in (first, adapters, norm, head)]
        return Weights(moved[0], moved[1], tuple(layer.cast(device, dtype) for layer in layers), moved[2], moved[3])


def random_weights(model: ModelConfig) -> Weights:
    """Weights in float64 on the CPU, decided by the sizes and the seed.  Raises BadModel."""
    check_model(model)
    generator = torch.Generator().manual_seed(model.seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    def matrix(out: int, into: int) -> Tensor:
        return normal(out, into) / into**0.5

    def norm() -> Tensor:
        return 1 + 0.1 * normal(model.hidden)

    def layer() -> Layer:
        queries, shared = model.heads * model.head_size, model.kv_heads * model.head_size
        return Layer(
            attention_norm=norm(),
            query=matrix(queries, model.hidden),
            key=matrix(shared, model.hidden),
            value=matrix(shared, model.hidden),
            output=matrix(model.hidden, queries),
            ffn_norm=norm(),
            gate=matrix(model.ffn, model.hidden),
            up=matrix(model.ffn, model.hidden),
            down=matrix(model.hidden, model.ffn),
        )

    embedding = normal(model.vocabulary + model.item_rows, model.hidden)
    adapters = normal(1 + model.adapter_rows, model.hidden)
    adapters[0] = 0
    layers = tuple(layer() for _ in range(model.layers))
    return Weights(embedding, adapters, layers, norm(), matrix(model.vocabulary, model.hidden))
