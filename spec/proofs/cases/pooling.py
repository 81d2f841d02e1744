"""Cases: the pool's own actions, taken, touched, released, published, withdrawn, forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.cases.case import Case, Goals
from spec.proofs.state import invariants
from spec.proofs.state.contracts import unchanged
from spec.proofs.state.world import World
from spec.proofs.symbols.loops import Invariant
from spec.proofs.symbols.maps import rest
from spec.proofs.symbols.value import Number, term

Term = Any


def held_by_key(w: World) -> Goals:
    return {
        "KEY: holders are who has the key": invariants.inverse(w, w.any["block"]),
        "KEY: holders are who has the key, under any key": invariants.held_under(w, w.any["pair"]),
        "KEY: a key that is there has a holder": invariants.holders(w, w.any["key"]),
    }


def _take(w: World) -> Any:
    w.path.assume(w.state.pool.free.size >= 1)
    w.before = w.cells()
    return w.modules.pool.take(w.state.pool)


def _taken(w: World, block: Any) -> Goals:
    pool, before, b = w.state.pool, w.before, w.any["block"]
    at = term(block)
    return {
        "POOL: the block is in the pool": invariants.inside(w, at),
        "POOL: it was free": before["refs values"][at] == 0,
        "COUNT: it has one reference": pool.refs.values[at] == 1,
        "POOL: one free block less": pool.free.size == before["free size"] - 1,
        "COUNT: free if and only if nobody refers": invariants.partition(w, b),
        "KEY: it has no key": z3.Not(pool.key_of.has[at]),
        **held_by_key(w),
        "ATOMIC: other blocks stay": z3.Implies(
            b != at,
            z3.And(
                pool.refs.values[b] == before["refs values"][b],
                pool.key_of.has[b] == before["key_of has"][b],
                pool.key_of.value[b] == before["key_of value"][b],
            ),
        ),
        **unchanged(w, before, Invariant([pool.refs, pool.free, pool.key_of, pool.holders])),
    }


def _touch(w: World) -> Any:
    block = Number(w.path.integer("hit block"))
    w.path.mention("block", block.term)
    w.path.assume(invariants.inside(w, block.term))
    w.before = w.cells()
    w.modules.pool.touch(w.state.pool, block)
    return block


def _one_more(w: World, block: Any) -> Goals:
    pool, before, b = w.state.pool, w.before, w.any["block"]
    more = z3.If(b == block.term, 1, 0)
    was_free = before["refs values"][block.term] == 0
    return {
        "COUNT: one reference more, here only": pool.refs.values[b] == before["refs values"][b] + more,
        "COUNT: free if and only if nobody refers": invariants.partition(w, b),
        "POOL: a free hit is used up": pool.free.size == before["free size"] - z3.If(was_free, 1, 0),
        **unchanged(w, before, Invariant([pool.refs, pool.free])),
    }


def _release(w: World) -> Any:
    block = Number(w.path.integer("held block"))
    w.path.mention("block", block.term)
    w.path.assume(invariants.refs(w, block.term) >= 1)
    w.before = w.cells()
    w.modules.pool.release(w.state.pool, block)
    return block


def _one_less(w: World, block: Any) -> Goals:
    pool, before, b = w.state.pool, w.before, w.any["block"]
    less = z3.If(b == block.term, 1, 0)
    last = before["refs values"][block.term] == 1
    return {
        "COUNT: one reference less, here only": pool.refs.values[b] == before["refs values"][b] - less,
        "COUNT: free if and only if nobody refers": invariants.partition(w, b),
        "POOL: the last reference frees it": pool.free.size == before["free size"] + z3.If(last, 1, 0),
        **unchanged(w, before, Invariant([pool.refs, pool.free])),
    }


def _publish(w: World) -> Any:
    block, key = Number(w.path.integer("complete block")), Number(w.path.integer("its key"))
    w.path.mention("block", block.term)
    w.path.mention("key", key.term)
    w.path.assume(z3.Not(w.state.pool.key_of.has[block.term]))
    w.before = w.cells()
    w.modules.pool.publish(w.state.pool, block, key)
    return block, key


def _hittable(w: World, answer: Any) -> Goals:
    (block, key), pool, before, b = answer, w.state.pool, w.before, w.any["block"]
    here = b == block.term
    return {
        "KEY: hittable under its key, here only": z3.And(
            pool.key_of.has[b] == z3.Or(here, before["key_of has"][b]),
            pool.key_of.value[b] == z3.If(here, key.term, before["key_of value"][b]),
        ),
        **held_by_key(w),
        **unchanged(w, before, Invariant([pool.key_of, pool.holders])),
    }


def _withdraw(w: World) -> Any:
    block = Number(w.path.integer("block"))
    w.path.mention("block", block.term)
    w.path.assume(w.state.pool.key_of.has[block.term])
    w.before = w.cells()
    w.modules.pool.withdraw(w.state.pool, block)
    return block


def _hidden(w: World, block: Any) -> Goals:
    pool, before, b = w.state.pool, w.before, w.any["block"]
    return {
        "KEY: hittable no more, here only": pool.key_of.has[b] == z3.And(before["key_of has"][b], b != block.term),
        **held_by_key(w),
        **unchanged(w, before, Invariant([pool.key_of, pool.holders])),
    }


def _oldest(w: World) -> Any:
    key = Number(w.path.integer("key"))
    w.before = w.cells()
    return key, w.modules.pool.oldest(w.state.pool, key)


def _found(w: World, answer: Any) -> Goals:
    (key, block), pool, b = answer, w.state.pool, w.any["block"]
    under: Callable[[Term], Term] = lambda b: z3.And(pool.key_of.has[b], pool.key_of.value[b] == key.term)  # noqa: E731
    pool_under = invariants.inverse(w, b)
    if block is None:
        w.path.assume(pool.holders.holds(key.term, b) == under(b))
        found = {"KEY: no block is under it": z3.Not(under(b))}
    else:
        found = {"KEY: the block is under it": z3.Implies(w.any["key"] == key.term, under(block.term))}
    return {**found, "KEY: holders are who has the key": pool_under, **unchanged(w, w.before, Invariant([]))}


def held(w: World) -> Term:
    """How many blocks are held: those that are not free."""
    refs = w.state.pool.refs.values
    return rest(w.state.pool.free, w.num_blocks - 1, lambda b: z3.And(invariants.inside(w, b), refs[b] != 0))


def _forget(w: World) -> Any:
    held(w)
    w.before = w.cells()
    return w.modules.pool.forget_keys(w.state.pool)


def _forgotten(w: World, done: bool) -> Goals:
    pool, before, b = w.state.pool, w.before, w.any["block"]
    all_free = before["free size"] == w.num_blocks - 1
    changed = Invariant([pool.key_of, pool.holders] if done else [])
    return {
        "ATOMIC: forgets if and only if no block is held": all_free if done else z3.Not(all_free),
        "KEY: nothing is hittable behind it": z3.Not(pool.key_of.has[b]) if done else z3.BoolVal(True),
        "KEY: what own published has a key": invariants.hittable(w, w.own)(b),
        **held_by_key(w),
        **unchanged(w, before, changed),
    }


CASES: tuple[Case, ...] = (
    Case("pool.take", _take, _taken),
    Case("pool.touch", _touch, _one_more),
    Case("pool.release", _release, _one_less),
    Case("pool.publish", _publish, _hittable),
    Case("pool.withdraw", _withdraw, _hidden),
    Case("pool.oldest", _oldest, _found),
    Case("pool.forget_keys", _forget, _forgotten),
)
