"""What a function promises to those who call it: proved once on the function, then assumed in its place.

A contract names what the function may change and what holds behind it, like the invariant of a loop; what it needs
is required of every caller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.state import invariants, loop_invariants
from spec.proofs.state.invariants import length
from spec.proofs.state.world import World
from spec.proofs.symbols.keys import ItemsOf
from spec.proofs.symbols.lists import Blocks, Tokens
from spec.proofs.symbols.loops import Invariant
from spec.proofs.symbols.value import Number, term

Term = Any


def lawful(w: World, names: tuple[str, ...]) -> dict[str, Term]:
    """Parts of the invariant that a function in the midst of an action rests on; none where no block is looked at."""
    holds = w.holds_now()
    return {name: holds[name] for name in names if w.blocks}


def require(w: World, needs: dict[str, Term], function: str) -> None:
    """What a caller must see to."""
    for name, need in needs.items():
        w.path.require(f"{name} (needed by {function})", need)


def unchanged(w: World, before: dict[str, Term], promise: Invariant) -> dict[str, Term]:
    """The frame: every cell that the promise does not name is there and as it was."""
    changed = w.names_of(promise)
    now = w.cells()
    return {
        f"ATOMIC: {name} stays": now[name] == old if name in now else z3.BoolVal(False)
        for name, old in before.items()
        if name not in changed
    }


# --- blocks for one request ----------------------------------------------------------------------


def hits_of(attempt: Any) -> tuple[Term, Callable[[Term], Term], Callable[[Term], Term]]:
    """Number, occurrences and places of the hits of an attempt."""
    hits = attempt.hits
    if isinstance(hits, (list, tuple)):
        return z3.IntVal(0), lambda b: z3.IntVal(0), lambda b: z3.IntVal(0)
    return hits.size, lambda b: hits.count[b], lambda b: hits.where[b]


def counted(attempt: Any) -> Term:
    """Whether the free hits of an attempt were counted: there are none, or a sum over them was asked for."""
    hits = attempt.hits
    totals = [] if isinstance(hits, (list, tuple)) else [total for _, total in hits.totals]
    if totals:
        return term(attempt.evictable) == totals[0]
    number, *_ = hits_of(attempt)
    return z3.And(number == 0, term(attempt.evictable) == 0)


def extend_table_needs(w: World, a: Any) -> dict[str, Term]:
    """The pool has what is missing, and what is missing covers the tokens (ALLOC-A)."""
    held, needed, free = held_with_hits(w, a), term(a.needed), w.state.pool.free.size
    wanted = wanted_slots(w, a)
    return {
        "POOL: free hits are counted": counted(a),
        "POOL: what is missing is there": z3.Or(needed <= 0, needed + term(a.evictable) <= free),
        "COVER: what is missing covers the tokens": (held + needed) * w.block_size >= wanted,
        "COVER: and is not more": (held + needed - 1) * w.block_size < wanted,
    }


def wanted_slots(w: World, a: Any) -> Term:
    return term(a.computed) + term(a.tokens) + w.lookahead


def extend_table(w: World, a: Any) -> Invariant:
    pool, live = w.state.pool, w.own
    number, count_hit, place_hit = hits_of(a)
    size, wanted, longest = w.block_size, wanted_slots(w, a), term(w.config.max_model_len)
    before, free, evictable, needed = length(live.table), pool.free.size, term(a.evictable), term(a.needed)
    held = before + number
    refs, published, has_hits = pool.refs.values, term(live.published), number > 0
    count, where = live.table.count, live.table.where
    adopted = z3.Lambda([b := z3.Int("b")], refs[b] + count_hit(b))
    owned = z3.Lambda([b], count[b] + count_hit(b))
    placed = z3.Lambda([b], z3.If(count_hit(b) >= 1, before + place_hit(b), where[b]))

    def reset() -> None:
        live.published = Number(w.path.integer("own published"))

    def numbers() -> dict[str, Term]:
        now = length(live.table)
        return {
            "POOL: the free queue loses what is taken and the free hits": pool.free.size
            == free - evictable - (now - held),
            "POOL: the free queue counts no less than none": pool.free.size >= 0,
            "COVER: every position and the lookahead has a slot": z3.Or(now * size >= wanted, now * size >= longest),
            "LENGTH: own table ends with the model": z3.Or(now == 0, (now - 1) * size < longest, now == held),
            "ATOMIC: the table keeps what it had": now >= held,
            "COVER: takes no more than is missing": now <= z3.If(needed > 0, held + needed, held),
            "KEY: hits count as published": term(live.published) == z3.If(has_hits, number, published),
        }

    return Invariant(
        [pool.refs, pool.free, pool.key_of, pool.holders, live.table],
        resets={"own published": reset},
        plain=numbers,
        each={
            "block": {
                "COUNT: free if and only if nobody refers": lambda b: invariants.partition(w, b),
                "KEY: holders are who has the key": lambda b: invariants.inverse(w, b),
                "WRITE: what is taken is its own and has no key": loop_invariants.new_or_as_before(
                    w, held, adopted, owned, placed
                ),
            },
            "key": {"KEY: a key that is there has a holder": lambda k: invariants.holders(w, k)},
            "pair": {"KEY: holders are who has the key, under any key": lambda kb: invariants.held_under(w, kb)},
        },
    )


def taken(w: World, before: Term, blocks: Any) -> Invariant:
    """The answer: the part of the table that is behind what it had and its hits; `before` counts those."""
    table, number = w.own.table, length(blocks)
    if isinstance(blocks, tuple):
        return Invariant([], plain=lambda: {"CONTENT: nothing was taken": table.size == before + number})
    return Invariant(
        [],
        plain=lambda: {"CONTENT: as many as the table gained": table.size == before + number},
        each={
            "place": {
                "CONTENT: in their places": lambda i: z3.Implies(
                    z3.And(i >= 0, i < number), blocks.at[i] == table.at[before + i]
                )
            }
        },
    )


def extend_table_stub(w: World, a: Any) -> Blocks:
    require(w, extend_table_needs(w, a), "_extend_table")
    promise, before = extend_table(w, a), held_with_hits(w, a)
    promise.suppose()
    blocks = Blocks.fresh("taken")
    taken(w, before, blocks).suppose()
    return blocks


def held_with_hits(w: World, a: Any) -> Term:
    number, *_ = hits_of(a)
    return length(w.own.table) + number


# --- publication ---------------------------------------------------------------------------------


LAWFUL_TO_PUBLISH = (
    "KEY: own publishes what is computed",
    "KEY: holders are who has the key",
    "KEY: holders are who has the key, under any key",
    "KEY: a key that is there has a holder",
    "KEY: keys of own are of its blocks",
    "KEY: own has keys of known tokens only",
    "WRITE: own holds a block once",
    "WRITE: what own still fills is its own and has no key",
)


def publish_needs(w: World, computed: Term, tokens: Term) -> dict[str, Term]:
    live, size = w.own, w.block_size
    certain = computed + tokens - length(live.drafts)
    return {
        **lawful(w, LAWFUL_TO_PUBLISH),
        "KEY: what is published has a slot": z3.Or(certain <= length(live.table) * size),
        "KEY: what is published is known": certain <= term(live.known),
        "KEY: keys cover what is published": term(live.published) <= live.keys.size,
    }


def publish_complete(w: World, computed: Term, tokens: Term) -> Invariant:
    """Blocks that only known tokens fill get their own keys; the number of published ones never falls (CACHE-5)."""
    pool, live, size = w.state.pool, w.own, w.block_size
    has, value, start = pool.key_of.has, pool.key_of.value, term(live.published)
    certain = computed + tokens - length(live.drafts)

    def reset() -> None:
        live.published = Number(w.path.integer("own published"))

    def numbers() -> dict[str, Term]:
        now = term(live.published)
        return {
            "KEY: never fewer than before": now >= start,
            "KEY: no more than complete ones": z3.Or(now == start, now * size <= certain),
            "KEY: every complete one": (now + 1) * size > certain,
            "KEY: keys cover what is published": now <= live.keys.size,
            "KEY: and known tokens only": live.keys.size * size <= term(live.known),
        }

    def published(b: Term) -> Term:
        place = live.table.where[b]
        new = z3.And(live.table.count[b] >= 1, start <= place, place < term(live.published))
        key = pool.key_of.value[b]
        own = invariants.own_key(live, place, key)
        return z3.And(pool.key_of.has[b] == z3.Or(has[b], new), z3.If(new, own, key == value[b]))

    return Invariant(
        [pool.key_of, pool.holders, live.keys],
        resets={"own published": reset},
        plain=numbers,
        each={
            "block": {
                "KEY: these blocks and no others": published,
                "KEY: holders are who has the key": lambda b: invariants.inverse(w, b),
            },
            "key": {"KEY: a key that is there has a holder": lambda k: invariants.holders(w, k)},
            "pair": {"KEY: holders are who has the key, under any key": lambda kb: invariants.held_under(w, kb)},
            "place": {"KEY: keys of own are of its blocks": invariants.rightful(w, live)},
        },
    )


def publish_stub(w: World, state: Any, live: Any, computed: Any, tokens: Any) -> None:
    require(w, publish_needs(w, term(computed), term(tokens)), "publish_complete")
    publish_complete(w, term(computed), term(tokens)).suppose()


def drafts_inside(a: Any) -> Term:
    """How many drafts are inside the grant; none, if that is negative."""
    return term(a.tokens) + term(a.computed) - term(a.live.known)


def drafts_needs(a: Any) -> dict[str, Term]:
    return {"LAST: nothing unknown but drafts": drafts_inside(a) <= length(a.live.drafts)}


def drafts_stub(w: World, a: Any) -> Any:
    """Keeps the drafts inside the grant; if none is inside all stay and none is scheduled (SPEC-2)."""
    require(w, drafts_needs(a), "_drafts_of")
    scheduled = drafts_inside(a)
    if not w.path.choose(scheduled > 0):
        return ()
    a.live.drafts = Tokens(scheduled, a.live)
    return a.live.drafts


# --- lookup --------------------------------------------------------------------------------------


def longest_hit(w: World, hits: Any) -> Invariant:
    """The hits are blocks under the request's own leading keys, each once, and leave a token to compute (CACHE-3)."""
    number = length(hits)
    few = {"LAST: a token is left to compute": number * w.block_size < term(w.own.known)}
    if isinstance(hits, list):
        return Invariant([], plain=lambda: few)
    return Invariant(
        [],
        plain=lambda: few,
        each={
            "block": {
                "KEY: a hit is under the key of its place": loop_invariants.hit(w, hits),
                "WRITE: hit once": lambda b: hits.count[b] <= 1,
            }
        },
    )


def longest_hit_keys(w: World) -> Invariant:
    live = w.own
    return Invariant(
        [live.keys],
        plain=lambda: {
            "KEY: keys cover the known tokens only": z3.And(
                live.keys.size >= 0, live.keys.size * w.block_size <= term(live.known)
            )
        },
        each={"place": {"KEY: keys of own are of its blocks": invariants.rightful(w, live)}},
    )


LAWFUL_TO_LOOK_UP = (
    "LENGTH: own knows its prompt at least",
    "KEY: own has keys of known tokens only",
    "KEY: keys of own are of its blocks",
    "KEY: holders are who has the key, under any key",
    "KEY: a key that is there has a holder",
)


def longest_hit_stub(w: World, state: Any, live: Any) -> Any:
    if not state.config.enable_prefix_caching:
        return []
    require(w, lawful(w, LAWFUL_TO_LOOK_UP), "longest_hit")
    longest_hit_keys(w).suppose()
    hits = Blocks.fresh("hits")
    longest_hit(w, hits).suppose()
    w.path.assume(hits.size <= live.keys.size)
    return hits


# --- giving back ---------------------------------------------------------------------------------


def release_table(w: World, live: Any) -> Invariant:
    """Every block loses the references that the table had; what nobody refers to any more is free (FREE-1, FREE-3)."""
    pool, table = w.state.pool, live.table
    refs, free, member, count = pool.refs.values, pool.free.size, pool.free.member, table.count
    return Invariant(
        [pool.refs, pool.free],
        plain=lambda: {
            "POOL: the free queue never shrinks": pool.free.size >= free,
            "COUNT: the table is empty": z3.And(length(live.table) == 0, term(live.published) == 0),
        },
        each={
            "block": {
                "COUNT: as many references less as it held": lambda b: invariants.refs(w, b) == refs[b] - count[b],
                "COUNT: free if and only if nobody refers": lambda b: invariants.partition(w, b),
                "PROGRESS: what became free counts": lambda b: z3.Implies(
                    z3.And(pool.free.member[b], z3.Not(member[b])), pool.free.size > free
                ),
            }
        },
    )


LAWFUL_TO_RELEASE = (
    "COUNT: references are occurrences",
    "COUNT: elsewhere is counted",
    "COUNT: free if and only if nobody refers",
    "COUNT: the reserved block is never held",
)


def release_table_stub(w: World, state: Any, live: Any) -> None:
    require(w, lawful(w, LAWFUL_TO_RELEASE), "release_table")
    promise = release_table(w, live)
    live.table, live.published = [], 0
    promise.suppose()


# --- encoder items -------------------------------------------------------------------------------


def items_stub(w: World, state: Any, live: Any, index: Any) -> ItemsOf:
    """The items that overlap a block; which these are is the matter of `prefix._overlapping`."""
    return ItemsOf(live, term(index))


def choose_items_needs(w: World, computed: Term, tokens: Term, budget: Term) -> dict[str, Term]:
    return {
        "EMBED: something is asked for": z3.And(computed >= 0, tokens >= 0),
        "CAPS: with what is left of the encoder budget": budget == term(w.step.encoder_budget),
    }


def choose_items_stub(w: World, state: Any, live: Any, computed: Any, tokens: Any, budget: Any) -> Any:
    """Never more tokens, never fewer than none, never more budget."""
    require(w, choose_items_needs(w, term(computed), term(tokens), term(budget)), "choose_items")
    w.items_from = term(computed)
    left, spare = w.path.integer("tokens before an item"), w.path.integer("encoder budget behind")
    w.path.assume(left >= 0, left <= term(tokens), spare >= 0, spare <= term(budget))
    return w.modules.encoder.Chosen((), Number(left), Number(spare))
