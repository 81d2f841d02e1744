"""How far from the oracle is too far: relative to what dense attention of the same type is off, nothing tuned.

    max|o - r| <= 3 * max|d - r| + 16 * eps * max|V|

o the paged output, r the float64 oracle, d the dense path in the type under test, eps that of the type in which
sums are kept.  Without the floor, the second term, float64 would give false alarms.  A maximum runs over one
request and one layer: o over the positions of the step, d over the text so far.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

FACTOR = 3
FLOOR_EPS = 16


class Verdict(NamedTuple):
    """The largest error and the bound; `error` is NaN where the output is not finite."""

    error: float
    bound: float

    @property
    def holds(self) -> bool:
        return self.error <= self.bound

    @property
    def share(self) -> float:
        """The error as a share of the bound."""
        return self.error / self.bound if self.bound else float(self.error > 0)


def eps(dtype: torch.dtype) -> float:
    """That of the type in which sums are kept: float64 for float64, else float32."""
    found: float = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32).eps
    return found


def bound(dense: Tensor, exact: Tensor, summed: Tensor, dtype: torch.dtype) -> float:
    """The bound for one request and one layer, from the text so far; `summed` is what the sums run over."""
    own: float = (dense.double() - exact).abs().max().item()
    largest: float = summed.abs().max().item()
    return FACTOR * own + FLOOR_EPS * eps(dtype) * largest


def judge(output: Tensor, exact: Tensor, limit: float) -> Verdict:
    """The output of some positions beside the oracle's."""
    error: float = (output.double() - exact).abs().max().item()
    return Verdict(error, limit)


def sure(logits: Tensor, limit: float) -> Tensor:
    """For each position, whether the best token of the oracle is ahead of the second by more than both can be off."""
    best = logits.topk(2, dim=-1).values
    return (best[:, 0] - best[:, 1]) > 2 * limit
