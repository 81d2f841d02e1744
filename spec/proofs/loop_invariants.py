"""What holds before each round of each loop of symbolic length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs import invariants
from spec.proofs.invariants import (
    held_under,
    holders,
    inside,
    inverse,
    own_key,
    partition,
    refs,
    rightful,
)
from spec.proofs.loops import Invariant, Loop
from spec.proofs.numbers import become, charged_so_far, numbers
from spec.proofs.value import Number, term

Term = Any
World = Any


def _adopting(w: World, loop: Loop) -> Invariant:
    """Each hit that came by has one more reference, and left the free queue if it was in it."""
    pool, hits = w.state.pool, loop.over
    refs_before, free_before = pool.refs.values, pool.free.size
    whole = [amount for _, amount in hits.totals]
    return Invariant(
        [pool.refs, pool.free],
        plain=lambda: {
            "POOL: free hits are used up": pool.free.size == free_before - whole[0] + loop.sums[0],
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


def _preempting(w: World) -> Invariant:
    """Who ran last waits in front; the one that is visited still runs, and the state is a lawful one."""
    pool, running, waiting, preempted = w.state.pool, w.state.running, w.state.waiting, w.step.preempted
    ran, everybody, gone = running.size, running.size + waiting.size, running.size + preempted.size

    def requests() -> None:
        w.rename_other()
        running.havoc(keep=w.own)
        waiting.havoc()
        preempted.size = w.path.integer("preempted")

    named = {"running": requests, "waiting": nothing, "preempted": nothing}
    return Invariant(
        [pool.refs, pool.free, pool.key_of, pool.holders],
        resets=named | {name: nothing for name in w.cells() if name.startswith("other ")},
        plain=lambda: {
            **invariants.plain(w),
            "STATE: who does not run any more waits": running.size + waiting.size == everybody,
            "PREEMPTED: the step says who": z3.And(running.size <= ran, running.size + preempted.size == gone),
            "PREEMPTED: the one that is visited still runs": running.inside(w.place),
        },
        each=lambda: invariants.each(w),
        rank=lambda: running.size,
        lemmas=lambda: w.lemmas(w),
    )


STEP_CELLS = ("running", "waiting", "set aside", "preempted", "budget left", "visited")


def _visiting(w: World) -> Invariant:
    """The budget is kept, everybody who was visited was visited once, and the head first."""
    start = numbers(w)

    def again() -> None:
        become(w)
        w.own_grants = w.path.integer("grants of own")

    def facts() -> dict[str, Term]:
        now = numbers(w)
        served = z3.And(now.running >= 1, z3.Or(now.visited == 0, now.grants >= 1))
        return {
            **charged_so_far(w, now),
            "STATE: who is visited runs, who is granted something was visited": z3.And(
                now.grants >= 0, now.grants <= now.visited, now.visited <= now.running
            ),
            "STATE: nobody is lost": now.running + now.waiting == start.running + start.waiting,
            "PREEMPTED: the step says who": now.running + now.preempted == start.running,
            "ORDER: nobody is set aside": now.aside == 0,
            "SEATS: never more than there are": now.running <= term(w.config.max_num_seqs),
            "STATE: own is granted something once, when it is visited": z3.And(
                w.own_grants >= 0, w.own_grants <= z3.If(z3.And(w.own_place >= 0, w.own_place < now.visited), 1, 0)
            ),
            "PROGRESS: the head is served first": z3.Or(start.running == 0, served),
            "PROGRESS: if it is own, own": z3.Implies(z3.And(w.own_place == 0, now.visited >= 1), w.own_grants == 1),
        }

    def rank() -> Term:
        return numbers(w).running - numbers(w).visited

    return Invariant([], {**dict.fromkeys(STEP_CELLS, nothing), "running": again}, facts, rank=rank)


def _admitting(w: World) -> Invariant:
    """The budget is kept, and the first that is eligible still waits or somebody was admitted."""
    start, granted = numbers(w), w.own_grants

    def again() -> None:
        become(w)
        w.ahead, w.own_grants = w.path.integer("ahead"), w.path.integer("grants of own")

    def facts() -> dict[str, Term]:
        now = numbers(w)
        return {
            **charged_so_far(w, now),
            "STATE: who is granted something runs": z3.And(now.grants >= 0, now.grants <= now.running),
            "STATE: whoever ran runs": now.running >= start.running,
            "STATE: nobody is lost": now.running + now.aside + now.waiting == start.running + start.waiting,
            "PREEMPTED: nobody is admitted in a step that preempts": z3.And(
                now.preempted == start.preempted, z3.Or(now.preempted == 0, now.running == start.running)
            ),
            "SEATS: never more than there are": now.running <= term(w.config.max_num_seqs),
            "STATE: own is granted something once, while it waits": z3.And(
                w.ahead < now.waiting, w.own_grants >= granted, w.own_grants <= z3.If(w.ahead >= 0, 0, 1)
            ),
            "PROGRESS: own, if it is the first of all, still waits or is served": z3.Implies(
                w.first, z3.Or(w.own_grants == 1, z3.And(w.ahead == 0, now.running == 0))
            ),
            "PROGRESS: who runs first is served": z3.Or(now.running == 0, now.grants >= 1),
            "PROGRESS: an eligible one still waits, or somebody runs": z3.Implies(
                w.eligible, z3.Or(now.running >= 1, w.ahead >= 0)
            ),
        }

    return Invariant(
        [],
        {**dict.fromkeys(STEP_CELLS, nothing), "running": again},
        facts,
        rank=lambda: numbers(w).waiting,
    )


def _settling(w: World, loop: Loop) -> Invariant:
    """Each token that came by was appended, and none of them was the last."""
    live = w.own
    known = term(live.known)

    def reset() -> None:
        live.known = Number(w.path.integer("own known"))
        live.tokens.size = w.path.integer("own tokens")

    def appended() -> dict[str, Term]:
        now = term(live.known)
        return {
            "OUTPUT: one token a round is appended": z3.And(now == known + loop.index, live.tokens.size == now),
            "FINISH: none of them ended it": z3.Or(loop.index == 0, now < term(live.limit)),
        }

    return Invariant([], {"own known": reset}, appended)


def _closing(w: World, loop: Loop) -> Invariant:
    """Own has advanced by its grant once that came by."""
    start = term(w.own.computed)
    place, entry = w.step.grants.own

    def reset() -> None:
        w.own.computed, w.other.computed = Number(w.path.integer("own computed")), Number(w.path.integer("computed"))

    def advanced() -> dict[str, Term]:
        came_by = z3.And(place >= 0, place < loop.index)
        due = start + z3.If(came_by, term(entry.tokens), 0)
        return {"CONTIGUOUS: computed tokens advance by what was granted": term(w.own.computed) == due}

    return Invariant([], {"own computed": reset, "other computed": nothing}, advanced)


def _committing(w: World, loop: Loop) -> Invariant:
    """Those who came by still run or have finished; nobody's place rises, nobody is settled twice."""
    still, finished, emitted = (loop.frame.f_locals[name] for name in ("still_running", "finished", "emitted"))

    def reset() -> None:
        still.there = {w.own: w.path.truth("own still runs")}
        still.havoc()
        finished.size, emitted.size = w.path.integer("finished"), w.path.integer("emitted")
        w.settled, w.ended = w.path.truth("own was settled"), w.path.truth("own has ended")
        w.head_ended = w.path.truth("the head has ended")

    def facts() -> dict[str, Term]:
        came_by = w.place < loop.index
        runs, place = still.there.get(w.own, z3.BoolVal(False)), still.places.get(w.own, w.place)
        return {
            "STATE: who came by still runs or has finished": still.size + finished.size == loop.index,
            "STATE: nothing is counted below none": z3.And(still.size >= 0, finished.size >= 0, emitted.size >= 0),
            "FINISH: own still runs unless it has ended": runs == z3.And(came_by, z3.Not(w.ended)),
            "FINISH: it ends when it is settled": z3.Implies(w.ended, w.settled),
            "OUTPUT: own is settled once, if it was granted something": w.settled == z3.And(came_by, w.granted),
            "OUTPUT: at most one delivery for each": emitted.size <= loop.index,
            "ORDER: the place of nobody rises": z3.Implies(runs, z3.And(place <= w.place, still.inside(place))),
            "PROGRESS: it falls when the head ends": z3.And(
                z3.Implies(w.head_ended, finished.size >= 1),
                z3.Implies(z3.And(runs, w.head_ended, w.place >= 1), place < w.place),
            ),
        }

    return Invariant([], {"still running": reset}, facts)


def nothing() -> None:
    """For a cell that is forgotten together with another."""


LOOPS: dict[tuple[str, str], Callable[[World, Loop], Invariant]] = {
    ("_extend_table", "list"): _adopting,
    ("_extend_table", "range"): _taking,
    ("publish_complete", "range"): _publishing,
    ("longest_hit", "list"): _hitting,
    ("_work_out_keys", "range"): _keying,
    ("release_table", "list"): _releasing,
    ("settle_one", "range"): _settling,
    ("close_step", "range"): _closing,
    ("commit", "range"): _committing,
    ("withdraw_from", "range"): lambda w, loop: withdrawn(w, loop.start, lambda: loop.index),
}
WHILES: dict[tuple[str, int], Callable[[World], Invariant]] = {
    ("visit_one_running", 0): _preempting,
    ("schedule", 0): _visiting,
    ("schedule", 1): _admitting,
}
"""By the function that the loop stands in, and its number there."""
