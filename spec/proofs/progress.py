"""PROGRESS: every request that fits alone finishes, by a ranking.

The head of the running requests is never preempted by another one: the victim is the newest.  When it is the only
one left the pool is large enough for it, and so it is for the first admission into an idle engine.  So in each step
the oldest request computes at least one token, and its rank (tokens until its limit, known tokens not computed)
falls in the order of pairs, which has no infinite descent.  Each preemption makes one request less run, so each
step ends.

Each premise is needed: `PREMISES` are dropped one by one in `counterexamples`, and each drop is refuted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.admitting import demand_stub
from spec.proofs.allocating import NUMBERS, WAITS
from spec.proofs.answering import RELEASE, fits_alone, stop_stub
from spec.proofs.cases import Case, Goals
from spec.proofs.invariants import length, occurrences, refs
from spec.proofs.lists import Tokens
from spec.proofs.value import Number, term
from spec.proofs.visiting import VISIT_PARTS, nobody_set_aside
from spec.proofs.world import World
from spec.vocabulary import Admission, Grant, ModelOutput, Status

Term = Any


def _first_drafts(w: World) -> Term:
    live = w.own
    before_first = term(live.known) == length(live.request.prompt_token_ids)
    return z3.Implies(before_first, z3.Or(length(live.drafts) == 0, term(w.config.use_eagle)))


def _runs_alone(w: World) -> Term:
    return z3.And(w.state.running.size == 1, nobody_set_aside(w), w.place == 0)


def held_by_own(w: World) -> None:
    """If nobody else runs, the blocks that are held are those of the own table (lemmas PARTITION and ONCE).

    ONCE needs that a block is referred to if and only if it stands in the table, and stands there once: either that
    holds of a witness, or the number of blocks held is the length of the table.
    """
    held, witness = w.path.integer("blocks held"), w.path.integer("a block held otherwise")
    w.path.mention("block", witness)
    occurs = occurrences(w.own.table, witness)
    otherwise = z3.Or(occurs > 1, (refs(w, witness) >= 1) != (occurs == 1))
    w.path.assume(w.state.pool.free.size + held == w.num_blocks - 1)
    w.path.assume(z3.Or(held == length(w.own.table), otherwise))


PREMISES: dict[str, Callable[[World], Term]] = {
    "it fits the pool alone at its longest (PRG-1)": lambda w: fits_alone(w, w.own.request),
    "it runs alone": _runs_alone,
    "budget is left": lambda w: term(w.step.budget) >= 1,
    "something known is not computed (LAST)": lambda w: term(w.own.computed) < term(w.own.known),
}
"""What the head of the running requests needs, besides the invariant."""

DRAFTS = "only a drafter with KV proposes before the first sampled token"
LIMITED = ("LENGTH: own has not reached its limit", "LENGTH: own drafts")
"""Parts of the invariant that progress rests on."""


def head(drop: str = "") -> Case:
    """The head alone is always granted something."""

    def act(w: World) -> Any:
        held_by_own(w)
        w.path.assume(*(holds(w) for name, holds in PREMISES.items() if name != drop))
        if drop != DRAFTS:
            w.path.assume(_first_drafts(w))
        attempt = w.modules.running.demand_of_running(w.state, w.step, w.own)
        return attempt, w.modules.allocation.ALLOCATE.refusal(attempt)

    def goals(w: World, answer: Any) -> Goals:
        return {"PROGRESS: the head alone is served": answer[1] is None}

    without = (drop,) if drop in LIMITED else ()
    return Case(_name("progress.head", drop), act, goals, {"without": without})


def visit_head(drop: str = "") -> Case:
    """The head is granted something whoever runs beside it: the others are preempted before it is its turn."""
    premises: dict[str, Callable[[World], Term]] = {**PREMISES, "it runs alone": lambda w: w.place == 0}

    def act(w: World) -> None:
        w.grants, w.lemmas = [], held_by_own
        w.step.preempted = Tokens(w.path.integer("preempted before"))
        held_by_own(w)
        w.path.assume(nobody_set_aside(w), _first_drafts(w))
        w.path.assume(*(holds(w) for name, holds in premises.items() if name != drop))
        w.modules.running.visit_one_running(w.state, w.step)

    def goals(w: World, _: None) -> Goals:
        return {"PROGRESS: the head is served": len(w.grants) == 1}

    return Case(_name("progress.visit_head", drop), act, goals, contracts=VISIT_PARTS)


IDLE_PREMISES: dict[str, Callable[[World], Term]] = {
    "it fits the pool alone at its longest (PRG-1)": lambda w: fits_alone(w, w.own.request),
    "nobody runs": lambda w: w.state.running.size == 0,
    "budget is left": lambda w: term(w.step.budget) >= 1,
}


def idle(drop: str = "") -> Case:
    """The first in line is admitted to an idle engine."""

    def act(w: World) -> Any:
        w.grants = []
        held_by_own(w)
        w.path.assume(*(holds(w) for name, holds in IDLE_PREMISES.items() if name != drop))
        return w.modules.waiting.admit_one(w.state, w.step)

    def goals(w: World, refusal: Any) -> Goals:
        return {"PROGRESS: the first in line is admitted": refusal is None}

    parts: dict[str, Callable[..., Any]] = {
        "waiting.demand_of_waiting": demand_stub,
        "allocation.grant": grant_without_needs,
    }
    return Case(_name("progress.idle", drop), act, goals, WAITS, contracts=parts)


def grant_without_needs(w: World, a: Any, admission: Admission) -> None:
    """Whether the grant is lawful is the matter of `waiting.admit_one`."""


def _name(case: str, drop: str) -> str:
    return f"{case} without: {drop}" if drop else case


def _rank(live: Any) -> tuple[Term, Term]:
    return term(live.limit) - term(live.known), term(live.known) - term(live.computed)


def _step(sampled: int) -> Callable[[World], Any]:
    def act(w: World) -> Any:
        live, tokens = w.own, Number(w.path.integer("granted tokens"))
        w.path.assume(tokens.term >= 1, term(live.computed) < term(live.known))
        end = term(live.computed) + tokens.term
        w.path.assume(end == term(live.known) if sampled else end < term(live.known))
        w.path.assume(length(live.drafts) == 0)
        w.before, w.rank = w.cells(), _rank(live)
        entry = Grant("own", Admission.RUNNING, live.computed, tokens, ())  # type: ignore[arg-type]
        w.step.grants = [entry]
        plan = w.modules.scheduler.close_step(w.state, w.step)
        words = tuple(Number(w.path.integer("sampled")) for _ in range(sampled))
        output = ModelOutput({"own": words} if sampled else {}, {})  # type: ignore[dict-item]
        w.modules.outcome.settle_one(w.state, live, plan.grants[0], output, [])
        return None

    return act


def _falls(w: World, _: Any) -> Goals:
    (most, rest), (most_now, rest_now) = w.rank, _rank(w.own)
    falls = z3.Or(most_now < most, z3.And(most_now == most, rest_now < rest))
    if w.own.status is Status.FINISHED:
        return {"PROGRESS: it finishes, or its rank falls": True}
    return {
        "PROGRESS: it finishes, or its rank falls": falls,
        "PROGRESS: its rank is bounded below": z3.And(most_now >= 0, rest_now >= 0),
    }


CASES: tuple[Case, ...] = (
    head(),
    visit_head(),
    idle(),
    *(
        Case(
            f"progress.rank, {count} sampled",
            _step(count),
            _falls,
            NUMBERS,
            contracts={
                "outcome.stop": stop_stub,
                **RELEASE,
                "scheduler.common_prefix_blocks": lambda w, state: 0,
            },
            bounded="no drafts; with drafts see outcome.settle_one",
        )
        for count in (0, 1)
    ),
)
