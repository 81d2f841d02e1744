"""What holds before each round of each loop of symbolic length: here the loops over blocks and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.state import step_invariants
from spec.proofs.state.invariants import (
    held_under,
    holders,
    inside,
    inverse,
    own_key,
    partition,
    refs,
    rightful,
)
from spec.proofs.symbols.loops import Invariant, Loop
from spec.proofs.symbols.value import Number, term

Term = Any
World = Any


def _adopting(w: World, loop: Loop) -> Invariant:
    """Each hit that came by has one more reference, and left the free queue if it was in it."""
    pool, hits = w.state.pool, loop.over
    refs_before, free_before = pool.refs.values, pool.free.size
    evictable = [amount for _, amount in hits.totals]
    return Invariant(
        [pool.refs, pool.free],
        plain=lambda: {
            "POOL: free hits are used up": pool.free.size
            == free_before - sum(evictable, z3.IntVal(0)) + sum(loop.sums, z3.IntVal(0)),
        },
        each={
            "block": {
                "COUNT: a reference for each hit": lambda b: (
                    refs(w, b) == refs_before[b] + hits.count[b] - loop.rest[b]
                ),
                "COUNT: free if and only if nobody refers": lambda b: partition(w, b),
            }
        },
    )


def _taking(w: World, loop: Loop) -> Invariant:
    """The table grows by what the free queue loses; what is taken is held by nobody else and has no key."""
    pool, table = w.state.pool, w.own.table
    free_before, held, at_before = pool.free.size, table.size, table.at
    apart = new_or_as_before(w, held, pool.refs.values, table.count, table.where)
    return Invariant(
        [pool.refs, pool.free, pool.key_of, pool.holders, table],
        plain=lambda: {
            "POOL: the free queue loses one a round": pool.free.size == free_before - (loop.index - loop.start),
            "COVER: the table gains one a round": table.size == held + (loop.index - loop.start),
        },
        each={
            "block": {
                "COUNT: free if and only if nobody refers": lambda b: partition(w, b),
                "KEY: holders are who has the key": lambda b: inverse(w, b),
                "WRITE: what is taken is its own and has no key": apart,
            },
            "key": {"KEY: a key that is there has a holder": lambda k: holders(w, k)},
            "pair": {"KEY: holders are who has the key, under any key": lambda kb: held_under(w, kb)},
            "place": {
                "ATOMIC: what was held stays in place": lambda i: z3.Implies(
                    z3.And(i >= 0, i < held), table.at[i] == at_before[i]
                )
            },
        },
    )


def new_or_as_before(w: World, held: Term, refs_before: Term, count: Term, where: Term) -> Callable[[Term], Term]:
    """A block behind the first `held` of the own table was free; any other is as before, or lost its key if free."""
    pool, live = w.state.pool, w.own
    has, value = pool.key_of.has, pool.key_of.value

    def fact(b: Term) -> Term:
        table, key_of = live.table, pool.key_of
        new = z3.And(table.count[b] >= 1, table.where[b] >= held)
        taken = z3.And(
            refs(w, b) == 1,
            refs_before[b] == 0,
            table.count[b] == 1,
            count[b] == 0,
            inside(w, b),
            z3.Not(key_of.has[b]),
        )
        as_before = z3.And(
            refs(w, b) == refs_before[b],
            table.count[b] == count[b],
            z3.Implies(table.count[b] >= 1, table.where[b] == where[b]),
            z3.Implies(key_of.has[b], z3.And(has[b], key_of.value[b] == value[b])),
            z3.Implies(refs_before[b] >= 1, key_of.has[b] == has[b]),
        )
        return z3.If(new, taken, as_before)

    return fact


def _publishing(w: World, loop: Loop) -> Invariant:
    """Blocks `start .. index` of the table have got their own keys, nothing else changed."""
    pool, live = w.state.pool, w.own
    has, value, start = pool.key_of.has, pool.key_of.value, loop.start
    keys_before = live.keys.size

    def published(b: Term) -> Term:
        place = live.table.where[b]
        new = z3.And(live.table.count[b] >= 1, start <= place, place < loop.index)
        key = pool.key_of.value[b]
        return z3.And(pool.key_of.has[b] == z3.Or(has[b], new), z3.If(new, own_key(live, place, key), key == value[b]))

    def reset() -> None:
        live.published = Number(w.path.integer("own published"))

    return Invariant(
        [pool.key_of, pool.holders, live.keys],
        resets={"own published": reset},
        plain=lambda: {
            "KEY: published so far": term(live.published) == loop.index,
            "KEY: keys cover what is published": z3.And(live.keys.size >= loop.index, live.keys.size >= keys_before),
            "KEY: and no more": z3.Or(live.keys.size == keys_before, live.keys.size == loop.index),
        },
        each={
            "block": {
                "KEY: these blocks and no others": published,
                "KEY: holders are who has the key": lambda b: inverse(w, b),
            },
            "key": {"KEY: a key that is there has a holder": lambda k: holders(w, k)},
            "pair": {"KEY: holders are who has the key, under any key": lambda kb: held_under(w, kb)},
            "place": {"KEY: keys are of its blocks": rightful(w, live)},
        },
    )


def _hitting(w: World, loop: Loop) -> Invariant:
    """The hits so far are blocks under the request's own keys, each once."""
    hits = loop.frame.f_locals["hits"]
    return Invariant(
        [hits],
        plain=lambda: {"KEY: one hit a round": hits.size == loop.index},
        each={
            "block": {
                "KEY: a hit is under the key of its place": hit(w, hits),
                "WRITE: hit once": lambda b: hits.count[b] <= 1,
            }
        },
    )


def hit(w: World, hits: Any) -> Callable[[Term], Term]:
    def fact(b: Term) -> Term:
        key_of = w.state.pool.key_of
        under = z3.And(key_of.has[b], own_key(w.own, hits.where[b], key_of.value[b]))
        return z3.Implies(hits.count[b] >= 1, under)

    return fact


def _keying(w: World, loop: Loop) -> Invariant:
    live = w.own
    return Invariant(
        [live.keys],
        plain=lambda: {"KEY: one key a round": live.keys.size == loop.index},
        each={"place": {"KEY: keys are of its blocks": rightful(w, live)}},
    )


def _releasing(w: World, loop: Loop) -> Invariant:
    """Each block that came by lost one reference, and is free if it was the last."""
    pool, table = w.state.pool, loop.over
    refs_before, free_before, free_member = pool.refs.values, pool.free.size, pool.free.member
    return Invariant(
        [pool.refs, pool.free],
        plain=lambda: {
            "POOL: the free queue never shrinks": pool.free.size >= free_before,
        },
        each={
            "block": {
                "COUNT: a reference less for each block": lambda b: (
                    refs(w, b) == refs_before[b] - table.count[b] + loop.rest[b]
                ),
                "COUNT: free if and only if nobody refers": lambda b: partition(w, b),
                "PROGRESS: what became free counts": lambda b: z3.Implies(
                    z3.And(pool.free.member[b], z3.Not(free_member[b])), pool.free.size > free_before
                ),
            }
        },
    )


def withdrawn(w: World, first: Term, index: Callable[[], Term]) -> Invariant:
    """Places `first .. index` of the own table have lost their keys, nothing else changed."""
    pool, table = w.state.pool, w.own.table
    has, value = pool.key_of.has, pool.key_of.value

    def fact(b: Term) -> Term:
        gone = z3.And(table.count[b] >= 1, first <= table.where[b], table.where[b] < index())
        return z3.And(
            pool.key_of.has[b] == z3.And(has[b], z3.Not(gone)),
            z3.Implies(pool.key_of.has[b], pool.key_of.value[b] == value[b]),
        )

    return Invariant(
        [pool.key_of, pool.holders],
        each={
            "block": {"KEY: these lose their keys": fact, "KEY: holders are who has the key": lambda b: inverse(w, b)},
            "key": {"KEY: a key that is there has a holder": lambda k: holders(w, k)},
            "pair": {"KEY: holders are who has the key, under any key": lambda kb: held_under(w, kb)},
        },
    )


LOOPS: dict[tuple[str, str], Callable[[World, Loop], Invariant]] = {
    ("_extend_table", "list"): _adopting,
    ("_extend_table", "range"): _taking,
    ("publish_complete", "range"): _publishing,
    ("longest_hit", "list"): _hitting,
    ("_work_out_keys", "range"): _keying,
    ("release_table", "list"): _releasing,
    ("settle_one", "range"): step_invariants.settling,
    ("close_step", "range"): step_invariants.closing,
    ("commit", "range"): step_invariants.committing,
    ("withdraw_from", "range"): lambda w, loop: withdrawn(w, loop.start, lambda: loop.index),
}
"""By the function that the loop stands in, and what it goes over."""
