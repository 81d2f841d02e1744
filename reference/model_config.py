"""The sizes of the model, and what must hold of them before anything is allocated.

A Llama-style decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU.  All sizes are numbers of
elements; nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DTYPES = ("float64", "float32", "bfloat16", "float16")
"""What weights, activations and the cache may be made of."""


class BadModel(ValueError):
    """Sizes, a type or a device with which no engine can be made; the text names what, in one line."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The sizes of one model; equal sizes and equal seed, equal weights.

    heads, kv_heads   query heads, and the heads of keys and values that they share in equal groups
    head_size         elements of one head; even, because rotary positions turn pairs
    item_rows         distinct embeddings of encoder items
    adapter_rows      distinct adapters
    """

    vocabulary: int = 97
    layers: int = 2
    hidden: int = 32
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 8
    ffn: int = 48
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-6
    item_rows: int = 101
    adapter_rows: int = 8
    seed: int = 0

    @property
    def group(self) -> int:
        """Query heads that share one head of keys and values."""
        return self.heads // self.kv_heads


ROWS: tuple[tuple[str, Callable[[ModelConfig], bool], str], ...] = (
    ("vocabulary", lambda m: m.vocabulary >= 2, "must be at least 2"),
    ("layers", lambda m: m.layers >= 1, "must be at least 1"),
    ("hidden", lambda m: m.hidden >= 1, "must be at least 1"),
    ("ffn", lambda m: m.ffn >= 1, "must be at least 1"),
    ("kv_heads", lambda m: m.kv_heads >= 1, "must be at least 1"),
    ("heads", lambda m: m.heads >= 1 and m.heads % m.kv_heads == 0, "must be a multiple of kv_heads"),
    ("head_size", lambda m: m.head_size >= 2 and m.head_size % 2 == 0, "must be even and at least 2"),
    ("item_rows", lambda m: m.item_rows >= 1, "must be at least 1"),
    ("adapter_rows", lambda m: m.adapter_rows >= 1, "must be at least 1"),
)
"""(field, what must hold, what is wrong otherwise), in the order in which they are asked."""


def check_model(model: ModelConfig) -> ModelConfig:
    """The sizes themselves; raises BadModel naming the first field that is wrong."""
    for field, holds, problem in ROWS:
        if not holds(model):
            others = f" (kv_heads is {model.kv_heads})" if "kv_heads" in problem else ""
            raise BadModel(f"{field}: {problem}{others}, not {getattr(model, field)}")
    return model
