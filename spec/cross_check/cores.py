"""Scopes of the counting core: no prefix caching, requests that are counts, pools in which they press on each other."""

from __future__ import annotations

from spec.explore.scope import STEPS, Scope, ask
from spec.vocabulary import Config


def _core(
    name: str,
    pool: tuple[int, int],
    requests: tuple[tuple[int, int], ...],
    *,
    budget: int,
    seats: int,
    longest: int,
    threshold: int = 0,
    aborts: bool = False,
    again: bool = True,
) -> Scope:
    """A core: (usable blocks, block size), and for each request (prompt tokens, most output tokens)."""
    blocks, size = pool
    return Scope(
        name,
        f"{len(requests)} requests, {blocks} blocks of {size}",
        Config(blocks + 1, size, budget, seats, longest, threshold, enable_prefix_caching=False),
        tuple(ask("abcd"[i], (1,) * prompt, most) for i, (prompt, most) in enumerate(requests)),
        (*STEPS, "abort") if aborts else STEPS,
        again=again,
    )


COMPARED: tuple[Scope, ...] = (
    _core("once", (4, 2), ((3, 3), (2, 4), (3, 2)), budget=4, seats=3, longest=8, again=False),
    _core("chunks", (4, 2), ((5, 2), (4, 3)), budget=3, seats=2, longest=8, threshold=2),
    _core("aborts", (4, 1), ((2, 2), (2, 2)), budget=4, seats=2, longest=6, aborts=True),
    _core("three", (4, 2), ((3, 3), (3, 3), (1, 2)), budget=5, seats=3, longest=7),
    _core("seats", (4, 2), ((2, 2), (2, 2), (2, 2), (2, 2)), budget=4, seats=2, longest=4),
)
"""Small enough to be searched without renaming: states and transitions must be equal."""

LARGE: tuple[Scope, ...] = (
    _core("large", (6, 1), ((2, 4), (2, 4), (2, 4)), budget=4, seats=3, longest=8, aborts=True),
    _core("larger", (6, 2), ((3, 4), (3, 4), (3, 4), (3, 4)), budget=5, seats=3, longest=8, aborts=True),
)
"""Equal requests, and the blocks of a pool in any order: what renaming is for.  Without it these take too long."""
