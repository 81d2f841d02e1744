"""The dense oracle: one request at a time, from token ids and positions only.

No blocks, no cache, no batch, and no code of the paged path: only the numbers of the weights are shared.  In
float64 attention is an explicit softmax, and rotary positions are complex multiplications; that is the reference.
In the type under test it is torch's dense attention, which shows how much of an error is that type's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from reference.model_config import ModelConfig
from reference.weights import Layer, Weights
from spec.vocabulary import Request


@dataclass(frozen=True)
class Dense:
    """What one text gives, position by position.

    attended   for each layer (positions, heads, head_size)
    values     for each layer (positions, kv_heads, head_size)
    logits     (positions, vocabulary)
    """

    attended: list[Tensor]
    values: list[Tensor]
    logits: Tensor


class Oracle:
    """Dense runs of one model in one type; texts are remembered.

    `exact` runs are the reference; the others are torch's dense attention in the type of the weights.
    """

    def __init__(self, model: ModelConfig, weights: Weights, *, exact: bool) -> None:
        self.model = model
        self.exact = exact
        dtype = torch.float64 if exact else weights.norm.dtype
        self.weights = weights.cast(weights.norm.device, dtype)
        self.wide = torch.float64 if dtype == torch.float64 else torch.float32
        self._known: dict[tuple[object, ...], Dense] = {}

    def run(self, request: Request, text: Sequence[int]) -> Dense:
        """The dense run of `text`, in which the encoder items of the request stand."""
        key = (request.lora_id, request.items, tuple(text))
        if key not in self._known:
            self._known[key] = self._run(request, text)
        return self._known[key]

    def _run(self, request: Request, text: Sequence[int]) -> Dense:
        x = self._embed(request, text)
        angles = torch.outer(torch.arange(len(text), dtype=torch.float64), self._speeds()).to(x.device)
        attended, values = [], []
        for layer in self.weights.layers:
            a, v = self._attend(layer, self._normalised(x) * layer.attention_norm, angles)
            attended.append(a)
            values.append(v)
            x = x + a.reshape(len(text), -1) @ layer.output.T
            h = self._normalised(x) * layer.ffn_norm
            gate = h @ layer.gate.T
            x = x + (gate * torch.sigmoid(gate) * (h @ layer.up.T)) @ layer.down.T
        return Dense(attended, values, (self._normalised(x) * self.weights.norm) @ self.weights.head.T)

    def _embed(self, request: Request, text: Sequence[int]) -> Tensor:
        rows = [self.weights.embedding[token % self.model.vocabulary] for token in text]
        for item in request.items:
            for place in range(min(item.length, max(len(text) - item.offset, 0))):
                row = (37 * item.content + place) % self.model.item_rows
                rows[item.offset + place] = self.weights.embedding[self.model.vocabulary + row]
        x = torch.stack(rows)
        if request.lora_id:
            x = x + self.weights.adapters[1 + (request.lora_id - 1) % self.model.adapter_rows]
        return x

    def _speeds(self) -> Tensor:
        return torch.tensor(
            [self.model.rope_theta ** (-2 * i / self.model.head_size) for i in range(self.model.head_size // 2)],
            dtype=torch.float64,
        )

    def _normalised(self, x: Tensor) -> Tensor:
        wide = x.to(self.wide)
        return (wide / ((wide * wide).mean(1, keepdim=True) + self.model.norm_eps).sqrt()).to(x.dtype)

    def _attend(self, layer: Layer, h: Tensor, angles: Tensor) -> tuple[Tensor, Tensor]:
        """Attention of every position over itself and those before it, head by head; and the values."""
        size, length = self.model.head_size, len(h)
        q = self._turned((h @ layer.query.T).reshape(length, -1, size), angles)
        k = self._turned((h @ layer.key.T).reshape(length, -1, size), angles)
        v = (h @ layer.value.T).reshape(length, -1, size)
        shared = torch.arange(self.model.heads, device=h.device) // (self.model.heads // self.model.kv_heads)
        k_of_head, v_of_head = k[:, shared], v[:, shared]
        if not self.exact:
            query, key, value = (part.transpose(0, 1)[None] for part in (q, k_of_head, v_of_head))
            return scaled_dot_product_attention(query, key, value, is_causal=True)[0].transpose(0, 1), v
        scores = torch.einsum("qhd,khd->hqk", q, k_of_head) / size**0.5
        later = torch.arange(length, device=h.device)
        scores = scores.masked_fill(later[None, None, :] > later[None, :, None], float("-inf"))
        weight = torch.exp(scores - scores.amax(-1, keepdim=True))
        weight = weight / weight.sum(-1, keepdim=True)
        return torch.einsum("hqk,khd->qhd", weight, v_of_head), v

    def _turned(self, x: Tensor, angles: Tensor) -> Tensor:
        """Rotary positions: the halves of a head as one complex number, turned."""
        half = self.model.head_size // 2
        wide = x.to(self.wide)
        turn = torch.polar(torch.ones_like(angles), angles).to(
            torch.complex128 if self.wide == torch.float64 else torch.complex64
        )
        turned = torch.complex(wide[..., :half].contiguous(), wide[..., half:].contiguous()) * turn[:, None, :]
        return torch.cat((turned.real, turned.imag), -1).to(x.dtype)


def greedy_text(oracle: Oracle, request: Request, length: int) -> tuple[int, ...]:
    """The tokens that a request says when it is alone: `length` of them, one dense run for each."""
    text = list(request.prompt_token_ids)
    for _ in range(length):
        text.append(int(oracle.run(request, text).logits[-1].argmax()))
    return tuple(text[len(request.prompt_token_ids) :])
