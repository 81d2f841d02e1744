"""The inductive invariant.

Names open with the law that they serve.  A fact about every block, key or place is a function of one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.counting import parts, referred
from spec.proofs.symbols.keys import KEY_CONTENT, KEY_DEPTH, KEY_OF, WORD
from spec.proofs.symbols.logic import formula
from spec.proofs.symbols.loops import frozen
from spec.proofs.symbols.value import term
from spec.vocabulary import RESERVED_BLOCK, Status

__all__ = ["each", "frozen", "plain"]

Term = Any
World = Any
Facts = dict[str, Callable[[Term], Term]]


def occurrences(blocks: Any, block: Term) -> Term:
    """How often a table, symbolic or just emptied, holds a block."""
    if isinstance(blocks, (list, tuple)):
        return z3.Sum([z3.If(term(each) == block, 1, 0) for each in blocks] or [z3.IntVal(0)])
    return blocks.count[block]


def length(blocks: Any) -> Term:
    return z3.IntVal(len(blocks)) if isinstance(blocks, (list, tuple)) else blocks.size


def plain(w: World) -> dict[str, Term]:
    """What holds of the numbers of the state."""
    facts: dict[str, Term] = {}
    longest, size = term(w.config.max_model_len), w.block_size
    for name, live in (("own", w.own), ("other", w.other)):
        known, computed, published = term(live.known), end_of(live), term(live.published)
        table, drafts, keys = length(live.table), length(live.drafts), length(live.keys)
        prompt, limit = length(live.request.prompt_token_ids), term(live.limit)
        if live.status is Status.FINISHED:
            facts[f"COUNT: {name} finished and holds nothing"] = table == 0
            continue
        facts |= {
            f"LENGTH: {name} knows its prompt at least": z3.And(prompt >= 1, prompt <= known),
            f"LENGTH: {name} has not reached its limit": z3.Or(known < limit, known == prompt),
            f"LENGTH: {name} limit": limit
            == z3.If(
                longest <= prompt + term(live.request.max_tokens), longest, prompt + term(live.request.max_tokens)
            ),
            f"LENGTH: {name} fits the model": z3.And(prompt <= longest, term(live.request.max_tokens) >= 1),
            f"LENGTH: {name} table ends with the model": z3.Or(table == 0, (table - 1) * size < longest),
            f"KEY: {name} publishes what is computed": z3.And(
                published >= 0, published <= table, published * size <= computed
            ),
            f"KEY: {name} has keys of known tokens only": keys * size <= known,
            f"LENGTH: {name} drafts": z3.And(drafts >= 0, drafts <= term(w.config.num_speculative_tokens)),
            f"LENGTH: {name} external tokens": z3.And(
                term(live.request.external_tokens) >= 0, term(live.request.external_tokens) < prompt
            ),
            f"CONTENT: {name} has tokens": length(live.tokens) == known,
        }
        if live.status is Status.RUNNING:
            facts[f"COVER: {name} has slots"] = computed <= table * size
            facts[f"LENGTH: {name} computes inside the model"] = z3.And(computed >= 0, computed <= longest)
            facts[f"KEY: {name} has the keys that it published"] = published <= keys
        else:
            facts[f"PREEMPTED: {name} has nothing"] = z3.And(table == 0, computed == 0, published == 0)
    facts["POOL: the free queue counts no less than none"] = w.state.pool.free.size >= 0
    facts["BUDGET: never negative"] = z3.And(term(w.step.budget) >= 0, term(w.step.encoder_budget) >= 0)
    facts["CAPS: the encoder cache is never overfull"] = term(w.state.encoder_free) >= 0
    facts["SEATS: never more than there are"] = w.state.running.size <= term(w.config.max_num_seqs)
    return facts


def each(w: World) -> dict[str, Facts]:
    """What holds of every block, key and place."""
    blocks: Facts = {
        "COUNT: references are occurrences": lambda b: formula(referred(refs(w, b), total(w, b))),
        "COUNT: elsewhere is counted": lambda b: formula(
            parts(total(w, b), occurrences(w.own.table, b), occurrences(w.other.table, b))
        ),
        "COUNT: nobody else holds nothing": lambda b: z3.Implies(w.state.running.others() <= 0, w.elsewhere[b] == 0),
        "COUNT: free if and only if nobody refers": lambda b: partition(w, b),
        "COUNT: the reserved block is never held": lambda b: z3.Implies(z3.Not(inside(w, b)), refs(w, b) == 0),
        "KEY: holders are who has the key": lambda b: inverse(w, b),
        "KEY: a key is on a block": lambda b: z3.Implies(w.state.pool.key_of.has[b], inside(w, b)),
        "KEY: names the content": lambda b: named(w, b),
    }
    for name, live in (("own", w.own), ("other", w.other)):
        blocks[f"WRITE: {name} holds a block once"] = once(live)
        blocks[f"WRITE: what {name} still fills is its own and has no key"] = filling(w, live)
        blocks[f"KEY: what {name} published has a key"] = hittable(w, live)
        blocks[f"CONTENT: {name} reads its own prefix"] = content(w, live)
    keys: Facts = {"KEY: a key that is there has a holder": lambda k: holders(w, k)}
    places: Facts = {
        f"KEY: keys of {name} are of its blocks": rightful(w, live)
        for name, live in (("own", w.own), ("other", w.other))
    }
    pairs: dict[str, Callable[[Any], Term]] = {
        "KEY: holders are who has the key, under any key": lambda pair: held_under(w, pair)
    }
    return {"block": blocks, "key": keys, "place": places, "pair": pairs}


def end_of(live: Any) -> Term:
    """What will be computed once the step in flight is done."""
    return term(live.computed) if live.end is None else live.end


# --- one line each -------------------------------------------------------------------------------


def refs(w: World, b: Term) -> Term:
    return w.state.pool.refs.values[b]


def total(w: World, b: Term) -> Term:
    return w.elsewhere[b] + occurrences(w.own.table, b) + occurrences(w.other.table, b)


def inside(w: World, b: Term) -> Term:
    return z3.And(b > RESERVED_BLOCK, b < w.num_blocks)


def partition(w: World, b: Term) -> Term:
    return w.state.pool.free.member[b] == z3.And(inside(w, b), refs(w, b) == 0)


def inverse(w: World, b: Term) -> Term:
    pool = w.state.pool
    has, value = pool.key_of.has[b], pool.key_of.value[b]
    return pool.holders.holds(value, b) == has


def held_under(w: World, pair: tuple[Term, Term]) -> Term:
    """The two maps of the prefix cache are each other's inverse, at a key and a block."""
    key, b = pair
    pool = w.state.pool
    return pool.holders.holds(key, b) == z3.And(pool.key_of.has[b], pool.key_of.value[b] == key)


def holders(w: World, k: Term) -> Term:
    return z3.Implies(w.state.pool.holders.present[k], w.state.pool.holders.count[k] >= 1)


def named(w: World, b: Term) -> Term:
    pool = w.state.pool
    return z3.Implies(pool.key_of.has[b], w.due[b] == KEY_CONTENT(pool.key_of.value[b]))


def once(live: Any) -> Callable[[Term], Term]:
    return lambda b: occurrences(live.table, b) <= 1


def filling(w: World, live: Any) -> Callable[[Term], Term]:
    def fact(b: Term) -> Term:
        if isinstance(live.table, list):
            return z3.BoolVal(not live.table)
        held = z3.And(live.table.count[b] >= 1, live.table.where[b] >= term(live.published))
        return z3.Implies(held, z3.And(refs(w, b) == 1, z3.Not(w.state.pool.key_of.has[b])))

    return fact


def hittable(w: World, live: Any) -> Callable[[Term], Term]:
    def fact(b: Term) -> Term:
        if isinstance(live.table, list):
            return z3.BoolVal(not live.table)
        published = z3.And(live.table.count[b] >= 1, live.table.where[b] < term(live.published))
        return z3.Implies(published, w.state.pool.key_of.has[b])

    return fact


def content(w: World, live: Any) -> Callable[[Term], Term]:
    def fact(b: Term) -> Term:
        if isinstance(live.table, list):
            return z3.BoolVal(not live.table)
        place = live.table.where[b]
        end = end_of(live)
        known = z3.If(end <= term(live.known), end, term(live.known))
        read = z3.And(live.table.count[b] >= 1, place * w.block_size + w.offset < known)
        return z3.Implies(read, w.due[b] == WORD(live.number, place))

    return fact


def rightful(w: World, live: Any) -> Callable[[Term], Term]:
    def fact(i: Term) -> Term:
        return z3.Implies(z3.And(i >= 0, i < live.keys.size), own_key(live, i, live.keys.at[i]))

    return fact


def own_key(live: Any, place: Term, key: Term) -> Term:
    """`key` is the key of a request's block: it says what that block holds, and how many blocks stand before it."""
    content = KEY_CONTENT(key) == WORD(live.number, place)
    return z3.And(key == KEY_OF(live.number, place), content, KEY_DEPTH(key) == place)
