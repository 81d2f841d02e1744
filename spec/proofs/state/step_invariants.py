"""What holds before each round of the loops over requests: a step, an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.state import invariants
from spec.proofs.state.numbers import become, charged_so_far, numbers
from spec.proofs.symbols.loops import Invariant, Loop
from spec.proofs.symbols.value import Number, term

Term = Any
World = Any


def nothing() -> None:
    """For a cell that is forgotten together with another."""


def preempting(w: World) -> Invariant:
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


def visiting(w: World) -> Invariant:
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
            "PROGRESS: the head is served first": z3.Implies(w.progresses, z3.Or(start.running == 0, served)),
            "PROGRESS: if it is own, own": z3.Implies(
                z3.And(w.progresses, w.own_place == 0, now.visited >= 1), w.own_grants == 1
            ),
        }

    def rank() -> Term:
        return numbers(w).running - numbers(w).visited

    return Invariant([], {**dict.fromkeys(STEP_CELLS, nothing), "running": again}, facts, rank=rank)


def admitting(w: World) -> Invariant:
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
                z3.And(w.progresses, w.first), z3.Or(w.own_grants == 1, z3.And(w.ahead == 0, now.running == 0))
            ),
            "PROGRESS: who runs first is served": z3.Implies(w.progresses, z3.Or(now.running == 0, now.grants >= 1)),
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


def settling(w: World, loop: Loop) -> Invariant:
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
            "OUTPUT: the one that came by": z3.BoolVal(live.tokens.last is loop.frame.f_locals.get("token")),
            "FINISH: none of them ended it": z3.Or(loop.index == 0, now < term(live.limit)),
        }

    return Invariant([], {"own known": reset}, appended)


def closing(w: World, loop: Loop) -> Invariant:
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


def committing(w: World, loop: Loop) -> Invariant:
    """Those who came by still run or have finished; nobody's place rises, nobody is settled twice."""
    still, finished, emitted = (loop.frame.f_locals[name] for name in ("still_running", "finished", "emitted"))

    def reset() -> None:
        still.there = {w.own: w.path.truth("own still runs")}
        still.havoc()
        finished.size, emitted.size = w.path.integer("finished"), w.path.integer("emitted")
        w.settled, w.ended = w.path.truth("own was settled"), w.path.truth("own has ended")
        w.head_ended, w.delivered = w.path.truth("the head has ended"), w.path.integer("delivered")

    def facts() -> dict[str, Term]:
        came_by = w.place < loop.index
        runs, place = still.there.get(w.own, z3.BoolVal(False)), still.places.get(w.own, w.place)
        return {
            "STATE: who came by still runs or has finished": still.size + finished.size == loop.index,
            "STATE: nothing is counted below none": z3.And(still.size >= 0, finished.size >= 0, emitted.size >= 0),
            "FINISH: own still runs unless it has ended": runs == z3.And(came_by, z3.Not(w.ended)),
            "FINISH: it ends when it is settled": z3.Implies(w.ended, w.settled),
            "OUTPUT: own is settled once, if it was granted something": w.settled == z3.And(came_by, w.granted),
            "OUTPUT: what is delivered is told": emitted.size == w.delivered,
            "OUTPUT: at most one delivery for each": emitted.size <= loop.index,
            "ORDER: the place of nobody rises": z3.Implies(runs, z3.And(place <= w.place, still.inside(place))),
            "PROGRESS: it falls when the head ends": z3.And(
                z3.Implies(w.head_ended, finished.size >= 1),
                z3.Implies(z3.And(runs, w.head_ended, w.place >= 1), place < w.place),
            ),
        }

    return Invariant([], {"still running": reset}, facts)


WHILES: dict[tuple[str, int], Callable[[World], Invariant]] = {
    ("visit_one_running", 0): preempting,
    ("schedule", 0): visiting,
    ("schedule", 1): admitting,
}
"""By the function that the loop stands in, and its number there."""
