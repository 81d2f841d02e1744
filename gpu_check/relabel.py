"""The same plans under other block ids: what is computed must not depend on them.

The reserved block keeps its id; it is the trash of padding rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from spec.vocabulary import RESERVED_BLOCK, StepPlan

Naming = Callable[[int], int]


def permuted(num_blocks: int, seed: int) -> Naming:
    """The ids of a pool, shuffled."""
    ids = [block for block in range(num_blocks) if block != RESERVED_BLOCK]
    shuffled = random.Random(seed).sample(ids, len(ids))
    names = dict(zip(ids, shuffled, strict=True))
    return lambda block: names.get(block, block)


def high(num_blocks: int, pool: int) -> Naming:
    """The ids of a small pool, moved to the end of a larger one."""
    return lambda block: block if block == RESERVED_BLOCK else block + pool - num_blocks


def relabelled(naming: Naming) -> Callable[[StepPlan], StepPlan]:
    """What gives the blocks of a plan their other names."""

    def apply(plan: StepPlan) -> StepPlan:
        grants = (grant._replace(blocks=tuple(map(naming, grant.blocks))) for grant in plan.grants)
        return plan._replace(grants=tuple(grants))

    return apply
