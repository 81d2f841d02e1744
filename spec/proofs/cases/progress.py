"""PROGRESS: every request that fits alone finishes, within a number of steps that falls in each.

The parts, each proved of the code:

    progress.head        who runs alone is served: it fits, and what it does not hold is free
    progress.visit_head  so is the head of those who run, for others are preempted before it is its turn
    progress.idle        so is the first in line when nobody runs
    scheduler.schedule   so a step with runnable work serves the head of `running ++ waiting`, and ends
    progress.rank        who is served ends, or its rank falls: (tokens until its limit, known tokens not computed)
    outcome.commit       when the head ends those behind it come forward; with ORDER, nobody is overtaken
    progress.run         so the bound on the steps of any request falls in every step

Each premise is needed: they are dropped one by one in `counterexamples`, and each drop is refuted.  Not claimed with
encoder items, whose cache may be full, and of a request that is set aside: one that is admitted passes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.counting import referred
from spec.proofs.cases.admitting import demand_stub
from spec.proofs.cases.allocating import NUMBERS, WAITS
from spec.proofs.cases.answering import RELEASE, fits_alone, sampled_behind, stop_stub
from spec.proofs.cases.case import Case, Goals
from spec.proofs.cases.pooling import held
from spec.proofs.cases.visiting import VISIT_PARTS, nobody_set_aside
from spec.proofs.state.invariants import length, occurrences, refs
from spec.proofs.state.world import World
from spec.proofs.symbols.lists import Tokens, distinct
from spec.proofs.symbols.logic import formula
from spec.proofs.symbols.value import Number, term
from spec.vocabulary import Admission, Grant, ModelOutput, Status

Term = Any


def _first_drafts(w: World) -> Term:
    live = w.own
    before_first = term(live.known) == length(live.request.prompt_token_ids)
    return z3.Implies(before_first, z3.Or(length(live.drafts) == 0, term(w.config.use_eagle)))


def _runs_alone(w: World) -> Term:
    return z3.And(w.state.running.size == 1, nobody_set_aside(w), w.place == 0)


def held_by_own(w: World) -> None:
    """If nobody else runs, as many blocks are held as the own table is long (lemmas PARTITION, ONCE, REFERENCES).

    A block is held if and only if it stands in the own table; or there is a witness of which only one is true.
    """
    witness = w.path.integer("a block held otherwise")
    w.path.mention("block", witness)
    same = (refs(w, witness) >= 1) == (occurrences(w.own.table, witness) >= 1)
    w.path.assume(z3.Implies(same, formula(referred(held(w), distinct(w.own.table)))))


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


HEAD_PREMISES: dict[str, Callable[[World], Term]] = {
    "it is the head": lambda w: w.place == 0,
    **{name: holds for name, holds in PREMISES.items() if holds is not _runs_alone},
}


def visit_head(drop: str = "") -> Case:
    """The head is granted something whoever runs beside it: the others are preempted before it is its turn."""

    def act(w: World) -> None:
        w.grants, w.lemmas = [], held_by_own
        w.step.preempted = Tokens(w.path.integer("preempted before"))
        held_by_own(w)
        w.path.assume(nobody_set_aside(w), _first_drafts(w))
        w.path.assume(*(holds(w) for name, holds in HEAD_PREMISES.items() if name != drop))
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


# --- the ranking ---------------------------------------------------------------------------------

Rank = tuple[Term, Term]


def rank(live: Any) -> Rank:
    """Tokens until its limit, then known tokens that are not computed."""
    return term(live.limit) - term(live.known), term(live.known) - term(live.computed)


def falls(before: Rank, now: Rank) -> Term:
    """In the order of pairs."""
    return z3.Or(now[0] < before[0], z3.And(now[0] == before[0], now[1] < before[1]))


def bounded(w: World, of: Rank) -> Term:
    longest = term(w.config.max_model_len)
    return z3.And(of[0] >= 0, of[0] <= longest, of[1] >= 0, of[1] <= longest)


def _head_is_granted(samples: bool, drafts: bool) -> Callable[[World], Any]:
    """A step of a request that is granted something: the plan is closed, the model answers, it is settled."""

    def act(w: World) -> Any:
        live, tokens = w.own, Number(w.path.integer("granted tokens"))
        scheduled: Any = Tokens(w.path.integer("scheduled drafts"), live) if drafts else ()
        sampled: Any = Tokens(w.path.integer("sampled"), live) if samples else ()
        w.path.assume(tokens.term >= 1, term(live.computed) < term(live.known), bounded(w, rank(live)))
        w.before, w.rank = w.cells(), rank(live)
        w.step.grants = [Grant("own", Admission.RUNNING, live.computed, tokens, (), scheduled)]  # type: ignore[arg-type]
        plan = w.modules.scheduler.close_step(w.state, w.step)
        w.path.assume(*sampled_behind(live, scheduled, sampled))
        new = Tokens(w.path.integer("new drafts"), live)
        output = ModelOutput({"own": sampled} if samples else {}, {"own": new})  # type: ignore[dict-item]
        w.modules.outcome.settle_one(w.state, live, plan.grants[0], output, [])
        return None

    return act


def _its_rank_falls(w: World, _: Any) -> Goals:
    if w.own.status is Status.FINISHED:
        return {"PROGRESS: it finishes, or its rank falls": True}
    return {
        "PROGRESS: it finishes, or its rank falls": falls(w.rank, rank(w.own)),
        "PROGRESS: its rank is bounded": bounded(w, rank(w.own)),
    }


def ranking(samples: bool, drafts: bool) -> Case:
    return Case(
        f"progress.rank, {'sampled' if samples else 'nothing sampled'}{', drafts' if drafts else ''}",
        _head_is_granted(samples, drafts),
        _its_rank_falls,
        NUMBERS,
        contracts={"outcome.stop": stop_stub, **RELEASE, "scheduler.common_prefix_blocks": lambda w, state: 0},
    )


# --- a run ---------------------------------------------------------------------------------------


def steps_left(longest: Term, place: Term, of: Rank) -> Term:
    """A bound on the steps until the request at a place in `running ++ waiting` has ended.

    longest  max_model_len
    of       the rank of the head
    """
    most = longest + 1
    return place * most * most + of[0] * most + of[1] + 1


def run(drop: str = "") -> Case:
    """Between two steps of any request's life, what stands before it and the rank of the head make the bound fall."""

    def act(w: World) -> Any:
        place, now = w.path.integer("its place"), w.path.integer("its place behind the step")
        ranks = [(w.path.integer("until its limit"), w.path.integer("not computed")) for _ in range(2)]
        w.path.assume(place >= 0, now >= 0, *(bounded(w, each) for each in ranks))
        told = {name: holds(place, now, *ranks) for name, holds in RUN_PREMISES.items() if name != drop}
        w.path.assume(*told.values())
        longest = term(w.config.max_model_len)
        return steps_left(longest, place, ranks[0]), steps_left(longest, now, ranks[1])

    def goals(w: World, answer: Any) -> Goals:
        before, now = answer
        return {"PROGRESS: the bound on its steps falls": now < before, "PROGRESS: it is above 0": now >= 1}

    return Case(_name("progress.run", drop), act, goals, NUMBERS)


RUN_PREMISES: dict[str, Callable[[Term, Term, Rank, Rank], Term]] = {
    "nobody who came later overtakes it, for nobody is set aside (ORDER)": lambda place, now, *_: now <= place,
    "the head is granted something, so its rank falls or it ends": lambda place, now, rank, rank_now: z3.Or(
        now < place, falls(rank, rank_now)
    ),
}
"""What the other cases prove of a step: `scheduler.schedule`, `outcome.commit`, `progress.rank`."""


CASES: tuple[Case, ...] = (
    head(),
    visit_head(),
    idle(),
    ranking(samples=False, drafts=False),
    ranking(samples=True, drafts=False),
    ranking(samples=True, drafts=True),
    run(),
)
