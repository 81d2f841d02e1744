"""Case: the empty scheduler, from which every run starts: there the invariant begins to hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spec.proofs.cases.allocating import NUMBERS
from spec.proofs.cases.case import Case, Goals
from spec.proofs.state.world import World
from spec.proofs.symbols.value import term
from spec.vocabulary import RESERVED_BLOCK

POOLS = range(1, 10)
"""Numbers of blocks, the reserved one among them."""


def _begin(w: World) -> Any:
    return [w.modules.state.State(replace(w.config, num_blocks=size), w.state.profile) for size in POOLS]


def _begun(w: World, states: Any) -> Goals:
    pools = [(size, state.pool) for size, state in zip(POOLS, states, strict=True)]
    given = [(state.config.num_blocks, state.profile) for state in states]
    queues = [(state.live, state.running, state.waiting, state.finished, state.freed) for state in states]
    return {
        "COUNT: nobody refers to a block": all(pool.refs == [0] * size for size, pool in pools),
        "POOL: all blocks but the reserved one are free": all(
            set(pool.free) == set(range(size)) - {RESERVED_BLOCK} for size, pool in pools
        ),
        "KEY: nothing is hittable": not any(pool.key_of or pool.holders for _, pool in pools),
        "STATE: it knows its configuration": given == [(size, w.state.profile) for size in POOLS],
        "STATE: nobody is there": not any(each for parts in queues for each in parts),
        "CAPS: all of the encoder cache is free": term(states[0].encoder_free) == term(w.config.encoder_cache_size),
    }


CASES: tuple[Case, ...] = (Case("state.State", _begin, _begun, NUMBERS, bounded=f"pools of up to {POOLS[-1]} blocks"),)
