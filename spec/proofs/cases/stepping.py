"""Cases: the whole step.  `schedule` repeats visits, examinations and admissions, `commit` settles who was granted.

What stands in their place here promises what their own cases prove.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.cases.allocating import GRANT_PARTS, NUMBERS, attempt_of, grantable, granted
from spec.proofs.cases.answering import RELEASE, accept, sampled_behind, stop_stub
from spec.proofs.cases.case import Case, Goals
from spec.proofs.state import contracts
from spec.proofs.state.contracts import unchanged
from spec.proofs.state.invariants import length
from spec.proofs.state.numbers import Numbers, Tally, admitted, become, charged_so_far, examined, numbers, visited
from spec.proofs.state.world import World
from spec.proofs.symbols.lists import Members, Tokens
from spec.proofs.symbols.loops import Invariant
from spec.proofs.symbols.queues import Line
from spec.proofs.symbols.value import Number, term
from spec.vocabulary import Admission, Grant, ModelOutput, StepPlan

Term = Any


def empty_step(w: World, config: Any) -> Any:
    """The step as it is made, its empty lists as counts."""
    step = w.real["allocation.Step"](config)
    begun = step.grants or step.preempted or step.skipped or step.adapters
    w.path.require("STATE: a step begins with nothing", z3.BoolVal(not begun))
    whole = term(step.encoder_budget) == term(config.max_num_encoder_input_tokens)
    w.path.require("CAPS: a step begins with the whole encoder budget", whole)
    w.step.index, w.step.budget, w.step.grants = Number(z3.IntVal(step.index)), step.budget, Tally(_none(), _none())
    w.step.preempted, w.step.adapters = Tokens(_none()), Members("adapters in use")
    w.step.skipped = Line(w, "set aside", {})
    w.step.skipped.size = _none()
    return w.step


def _none() -> Term:
    return z3.IntVal(0)


def _promised(w: World, promise: Callable[[Numbers, Numbers], dict[str, Term]]) -> None:
    before = numbers(w)
    w.path.assume(*promise(before, become(w)).values())


def visit_stub(w: World, state: Any, step: Any) -> None:
    """A visit; where PROGRESS has its premises the head is served (`progress.visit_head`)."""
    before = numbers(w)
    w.path.require("STATE: somebody is left to visit", before.visited < before.running)
    w.path.require("BUDGET: there is some left to visit with", before.budget >= 1)
    w.path.require("ORDER: nobody is set aside (needed by visit_one_running)", before.aside == 0)
    w.path.assume(*visited(before, now := become(w)).values())
    w.path.assume(z3.Implies(z3.And(w.progresses, before.visited == 0), now.grants == before.grants + 1))
    own = z3.And(before.visited == w.own_place, now.grants > before.grants)
    w.own_grants = w.own_grants + z3.If(own, 1, 0)


def examine_stub(w: World, state: Any, step: Any) -> bool:
    """An examination; who is eligible passes while nobody runs, for no adapter is in use then."""
    w.path.require("STATE: somebody waits to be examined", state.waiting.size >= 1)
    eligible = z3.And(w.eligible, w.ahead == 0, state.running.size == 0)
    passed = w.path.choose(z3.Or(eligible, w.path.truth("passes")))
    _promised(w, lambda before, now: examined(before, now, passed))
    w.ahead = w.ahead - (0 if passed else 1)
    w.passed = passed
    return passed


def admit_stub(w: World, state: Any, step: Any) -> Any:
    """An admission, or a refusal; where PROGRESS has its premises only while somebody runs (`progress.idle`)."""
    before = numbers(w)
    w.path.require("STATE: somebody waits to be admitted", before.waiting >= 1)
    w.path.require("BUDGET: there is some left to admit with", before.budget >= 1)
    w.path.require("STATE: it passed its examination", z3.BoolVal(w.passed))
    w.path.require("SEATS: there is one left", before.running < term(w.config.max_num_seqs))
    granted = w.path.choose(z3.Or(z3.And(w.progresses, before.running == 0), w.path.truth("admitted")))
    _promised(w, lambda before, now: admitted(w, before, now, granted))
    w.own_grants = w.own_grants + z3.If(z3.And(w.ahead == 0, granted), 1, 0)
    w.ahead = w.ahead - (1 if granted else 0)
    return None if granted else "refused"


def _schedule(w: World) -> Any:
    """Any number of requests run and wait; own is any of them: at a place in running, or behind `ahead` that wait."""
    runs = w.path.truth("own runs")
    running = w.state.running = Line(w, "running", {w.own: runs})
    waiting = w.state.waiting = Line(w, "waiting", {})
    w.path.assume(running.size <= term(w.config.max_num_seqs))
    w.own_place, w.ahead, w.own_grants = running.places[w.own], w.path.integer("ahead"), z3.IntVal(0)
    waits = waiting.inside(w.ahead)
    w.path.assume(z3.If(runs, w.ahead == -1, z3.And(waits, w.own_place < 0)))
    # They are those of `progress`: each fits alone (ADD), something known is not computed (LAST), no encoder items.
    w.passed, w.progresses = False, w.path.truth("PROGRESS has its premises")
    w.eligible = z3.And(waits, w.path.truth("own is eligible"))
    w.first = z3.And(w.eligible, w.ahead == 0, running.size == 0)
    w.begun = numbers(w)
    w.plans = []
    return w.modules.scheduler.schedule(w.state)


def _scheduled(w: World, now: Numbers) -> Goals:
    before, adapter = w.begun, term(w.own.request.lora_id)
    return {
        "STATE: the step is closed once, and answers its plan": len(w.plans) == 1 and now is w.plans[0],
        **charged_so_far(w, now),
        "SEATS: no more run than there are": now.running <= term(w.config.max_num_seqs),
        "STATE: nobody is lost": now.running + now.aside + now.waiting == before.running + before.waiting,
        "STATE: whoever is granted something runs": now.grants <= now.running,
        "STATE: nobody is granted something twice": w.own_grants <= 1,
        "CAPS: the adapter of whoever runs was in use": z3.Implies(
            z3.And(w.own_place >= 0, w.own_place < now.running, adapter != 0), w.step.adapters.member[adapter]
        ),
        "PREEMPTED: nobody is admitted in a step that preempts": z3.Or(
            now.preempted == 0, now.running + now.preempted == before.running
        ),
        "PROGRESS: a step with runnable work grants something": z3.Implies(
            z3.And(w.progresses, z3.Or(before.running >= 1, w.eligible)), now.grants >= 1
        ),
        "PROGRESS: the head is granted something": z3.Implies(
            z3.And(w.progresses, z3.Or(w.own_place == 0, w.first)), w.own_grants == 1
        ),
    }


def close_stub(w: World, state: Any, step: Any) -> Numbers:
    """The plan is what the step has come to."""
    w.plans.append(plan := numbers(w))
    return plan


STEP_PARTS: dict[str, Callable[..., Any]] = {
    "allocation.Step": empty_step,
    "running.visit_one_running": visit_stub,
    "waiting.examine_one": examine_stub,
    "waiting.admit_one": admit_stub,
    "scheduler.close_step": close_stub,
}


def settle_stub(w: World, state: Any, live: Any, entry: Any, output: Any, emitted: Any) -> Any:
    """Settles one request by its own grant: it may end, and something may be delivered."""
    w.path.require("OUTPUT: it is settled by its own grant", z3.BoolVal(entry.request_id == live.request.request_id))
    ends = w.path.choose(w.path.truth("ends"))
    if live is w.own:
        w.path.require("OUTPUT: nobody is settled twice", z3.Not(w.settled))
        w.settled, w.ended = z3.BoolVal(True), z3.BoolVal(ends)
    w.head_ended = z3.Or(w.head_ended, z3.And(state.running.places[live] == 0, ends))
    if w.path.choose(w.path.truth("something is delivered")):
        emitted.append(entry)
        w.delivered = w.delivered + 1
    return "end" if ends else None


def _commit(w: World) -> Any:
    granted = [name for name in ("own", "other") if w.path.choose(w.path.truth(f"{name} was granted something"))]
    w.granted, w.settled, w.ended = z3.BoolVal("own" in granted), z3.BoolVal(False), z3.BoolVal(False)
    w.head_ended, w.delivered = z3.BoolVal(False), z3.IntVal(0)
    w.before, w.ran = w.cells(), w.state.running.size
    entries = tuple(Grant(name, Admission.RUNNING, 0, 1, ()) for name in granted)
    return w.modules.outcome.commit(w.state, StepPlan(entries), ModelOutput({}, {}))


def _committed(w: World, result: Any) -> Goals:
    running = w.state.running
    runs, place = running.there[w.own], running.places[w.own]
    return {
        "STATE: who ran still runs or has finished": running.size + length(result.finished) == w.ran,
        "FINISH: own still runs unless it has ended": runs == z3.Not(w.ended),
        "OUTPUT: own is settled if it was granted something": w.settled == w.granted,
        "OUTPUT: what is delivered is told": length(result.emitted) == w.delivered,
        "OUTPUT: at most one delivery for each": length(result.emitted) <= w.ran,
        "ORDER: the place of nobody rises": z3.Implies(runs, z3.And(place >= 0, place <= w.place)),
        "PROGRESS: it falls when the head ends": z3.Implies(z3.And(runs, w.head_ended, w.place >= 1), place < w.place),
        "PROGRESS: the head stays the head": z3.Implies(z3.And(runs, w.place == 0), place == 0),
        **unchanged(w, w.before, Invariant([], {"running": lambda: None})),
    }


# --- one request through a step -------------------------------------------------------------------


def _through(samples: bool) -> Callable[[World], Any]:
    """A request is granted something, the plan is closed, the model answers, it is settled: the parts fit together."""

    def act(w: World) -> Any:
        a = attempt_of(w, w.own.computed)
        grantable(w, a)
        a.needed = Number(w.path.integer("needed"))
        w.path.assume(*contracts.extend_table_needs(w, a).values())
        w.path.assume((term(a.computed) + term(a.tokens) >= term(w.own.known)) == samples)
        granted(w, a, Admission.RUNNING)
        plan = w.modules.scheduler.close_step(w.state, w.step)
        w.own.end = None  # what was to be written is written
        (entry,) = plan.grants
        sampled: Any = Tokens(w.path.integer("sampled"), w.own) if samples else ()
        w.path.assume(*sampled_behind(w.own, entry.drafts, sampled))
        if samples:
            accept(w, term(w.own.computed) - (length(entry.drafts) + 1 - length(sampled)))
        new = Tokens(w.path.integer("new drafts"), w.own)
        w.path.assume(new.size >= 0, new.size <= term(w.config.num_speculative_tokens))
        output = ModelOutput({"own": sampled} if samples else {}, {"own": new})  # type: ignore[dict-item]
        return w.modules.outcome.settle_one(w.state, w.own, entry, output, [])

    return act


def _came_through(w: World, end: Any) -> Goals:
    """The invariant holds again, law by law; what each part does is the matter of its own case."""
    by_law: dict[str, list[Term]] = {}
    for name, goal in w.holds_now().items():
        by_law.setdefault(name.partition(":")[0], []).append(goal)
    goals = {f"{law}: holds again behind the step": z3.And(*parts) for law, parts in by_law.items()}
    if end is None:
        goals["LAST: something known is left to compute"] = term(w.own.computed) < term(w.own.known)
    return goals


THROUGH_PARTS: dict[str, Callable[..., Any]] = {
    **GRANT_PARTS,
    "scheduler.common_prefix_blocks": lambda w, state: 0,
    "outcome.stop": stop_stub,
    **RELEASE,
}

CASES: tuple[Case, ...] = (
    *(
        Case(f"stepping.through, {how}", _through(samples), _came_through, contracts=THROUGH_PARTS)
        for samples, how in ((False, "nothing sampled"), (True, "sampled"))
    ),
    Case("scheduler.schedule", _schedule, _scheduled, {**NUMBERS, "adapter": True}, contracts=STEP_PARTS),
    Case("outcome.commit", _commit, _committed, NUMBERS, contracts={"outcome.settle_one": settle_stub}),
)
