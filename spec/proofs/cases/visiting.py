"""Cases: the running pass: what a request asks for, whether it gets it, who is preempted."""

from __future__ import annotations

from typing import Any

import z3

from spec.proofs.cases.allocating import (
    NUMBERS,
    Parts,
    attempt_of,
)
from spec.proofs.cases.case import Case, Goals
from spec.proofs.state import contracts
from spec.proofs.state.contracts import unchanged
from spec.proofs.state.invariants import length
from spec.proofs.state.numbers import numbers, visited
from spec.proofs.state.world import World
from spec.proofs.symbols.lists import Blocks, Tokens
from spec.proofs.symbols.loops import Invariant
from spec.proofs.symbols.queues import keeps_order
from spec.proofs.symbols.value import Number, term
from spec.vocabulary import Admission, Grant, Status

Term = Any


def least(*terms: Term) -> Term:
    """The least of some terms, said without the spec's own formulas."""
    first, *rest = terms
    for each in rest:
        first = z3.If(first <= each, first, each)
    return first


def threshold(w: World, tokens: Term) -> Term:
    limit = term(w.config.long_prefill_token_threshold)
    return z3.If(z3.And(limit > 0, limit < tokens), limit, tokens)


def needed_blocks(w: World, a: Any, held: Term) -> Goals:
    wanted = contracts.wanted_slots(w, a)
    return {
        "COVER: what is missing covers the tokens": (held + term(a.needed)) * w.block_size >= wanted,
        "COVER: and is not more": (held + term(a.needed) - 1) * w.block_size < wanted,
    }


def capacity(w: World, a: Any, held: Term) -> Term:
    """Whether the tokens fit what is held and free, said in tokens."""
    return contracts.wanted_slots(w, a) <= (held + w.state.pool.free.size - term(a.evictable)) * w.block_size


def _demand(w: World) -> Any:
    w.path.assume(term(w.own.computed) < term(w.own.known), term(w.step.budget) >= 1)
    w.before = w.cells()
    return w.modules.running.demand_of_running(w.state, w.step, w.own)


def _demanded(w: World, a: Any) -> Goals:
    return {**_cut(w, a), **_no_hits(a), **unchanged(w, w.before, Invariant([]))}


def _no_hits(a: Any) -> Goals:
    return {"POOL: who runs hits nothing and loads nothing": (a.hits, a.evictable, a.external) == ((), 0, 0)}


def demand_of_running_stub(w: World, state: Any, step: Any, live: Any) -> Any:
    """What `demand_of_running` was proved to answer, with or without items."""
    w.path.require("PROGRESS: budget is left (needed by demand_of_running)", term(step.budget) >= 1)
    w.path.require("LAST: something is known (needed by demand_of_running)", term(live.computed) < term(live.known))
    a = attempt_of(w, live.computed)
    a.needed = Number(w.path.integer("needed"))
    w.path.assume(*(_cut_by_items(w, a) if live.request.items else _cut(w, a)).values())
    w.attempt = a
    return a


def _cut(w: World, a: Any) -> Goals:
    known, computed = term(w.own.known), term(w.own.computed)
    wanted = threshold(w, known + length(w.own.drafts) - computed)
    room = term(w.config.max_model_len) - computed
    return {
        "BUDGET: tokens are cut by threshold, budget and model length": term(a.tokens)
        == least(wanted, term(w.step.budget), room),
        "PROGRESS: something is asked for": term(a.tokens) >= 1,
        "LENGTH: from where it stands": term(a.computed) == computed,
        **needed_blocks(w, a, length(w.own.table)),
    }


def _demand_with_items(w: World) -> Any:
    return _demand(w)


def _demanded_with_items(w: World, a: Any) -> Goals:
    stops = a.chosen is not None and term(a.tokens) == term(a.chosen.tokens)
    return {
        "EMBED: tokens stop before an item that cannot be computed": stops,
        "EMBED: items are looked for where it stands": w.items_from == term(a.computed),
        **_cut_by_items(w, a),
        **_no_hits(a),
        **unchanged(w, w.before, Invariant([])),
    }


def _cut_by_items(w: World, a: Any) -> Goals:
    known, computed = term(w.own.known), term(w.own.computed)
    wanted = threshold(w, known + length(w.own.drafts) - computed)
    room = term(w.config.max_model_len) - computed
    return {
        "BUDGET: never more than without items": term(a.tokens) <= least(wanted, term(w.step.budget), room),
        "BUDGET: never negative": term(a.tokens) >= 0,
        "LENGTH: from where it stands": term(a.computed) == computed,
        **needed_blocks(w, a, length(w.own.table)),
    }


def _guard(w: World) -> Any:
    a = attempt_of(w, w.own.computed)
    a.evictable = Number(w.path.integer("evictable"))
    held = Number(w.own.table.size)
    a.needed = w.modules.formulas.blocks_needed(a.computed, a.tokens, w.config.lookahead, held, w.config.block_size)
    w.before = w.cells()
    return a, w.modules.allocation.ALLOCATE.refusal(a)


def _judged(w: World, answer: Any) -> Goals:
    a, refusal = answer
    some, fits = term(a.tokens) > 0, capacity(w, a, w.own.table.size)
    expected = {None: z3.And(some, fits), "pool": z3.And(some, z3.Not(fits)), "nothing to compute": z3.Not(some)}
    return {
        "POOL: accepts if and only if the tokens fit": expected[refusal and refusal.name],
        **unchanged(w, w.before, Invariant([])),
    }


def _visit_guard(w: World) -> Any:
    w.step.index = Number(w.path.integer("index"))
    w.before = w.cells()
    return w.modules.running.VISIT.refusal((w.state, w.step))


def _visited(w: World, refusal: Any) -> Goals:
    left, budget = term(w.step.index) < w.state.running.size, term(w.step.budget) > 0
    expected = {None: z3.And(left, budget), "all visited": z3.Not(left), "budget": z3.And(left, z3.Not(budget))}
    return {
        "PROGRESS: visits while somebody is left and budget is left": expected[refusal and refusal.name],
        **unchanged(w, w.before, Invariant([])),
    }


def nobody_set_aside(w: World) -> Term:
    """Nobody is before the running pass is over."""
    return w.step.skipped.size == 0


def _preempt(w: World) -> Any:
    w.path.assume(nobody_set_aside(w))
    w.before, w.member_before = w.cells(), w.state.pool.free.member
    return w.modules.running.preempt_one(w.state, w.step)


def _preempted(w: World, victim: Any) -> Goals:
    name, before = victim.request.request_id, w.before
    table, b = before[f"{name} table count"], w.any["block"]
    spared = "other" if name == "own" else "own"
    now = w.cells()
    keeps = ("known", "limit", "drafts size", "keys size", "keys at")
    return {
        **w.holds_now(),
        "PREEMPTED: it was not scheduled in this step": w.victim_place >= before["visited"],
        "PREEMPTED: it is the newest": w.victim_place == before["running"] - 1,
        "PREEMPTED: it holds and has computed nothing": z3.And(
            length(victim.table) == 0, term(victim.computed) == 0, term(victim.published) == 0
        ),
        "PREEMPTED: the step says so": w.step.preempted == [name],
        "STATE: it waits in front": victim.status is Status.PREEMPTED
        and w.state.waiting.joined == [("front", victim)]
        and victim not in w.state.running.present,
        "STATE: one runs less, one waits more": z3.And(
            now["running"] == before["running"] - 1, now["waiting"] == before["waiting"] + 1
        ),
        "PROGRESS: a block that only it held is free": z3.Implies(
            z3.And(table[b] == 1, before["refs values"][b] == 1), w.state.pool.free.member[b]
        ),
        "PROGRESS: and counts as free": z3.Implies(
            z3.And(table[b] == 1, before["refs values"][b] == 1), now["free size"] > before["free size"]
        ),
        **{f"ATOMIC: {name} {field} stays": now[f"{name} {field}"] == before[f"{name} {field}"] for field in keeps},
        **{f"ATOMIC: {cell} stays": now[cell] == old for cell, old in before.items() if cell.startswith(f"{spared} ")},
        **keeps_order(w),
        "BUDGET: nothing is charged or refunded": z3.And(
            now["budget left"] == before["budget left"], now["visited"] == before["visited"]
        ),
    }


def _preempt_items(w: World) -> Any:
    w.own.cached.add(0)
    return _preempt(w)


def _items_freed(w: World, victim: Any) -> Goals:
    back = w.before["encoder space"] + (term(w.own.request.items[0].length) if victim is w.own else 0)
    return {
        "CAPS: its items leave the encoder cache": term(w.state.encoder_free) == back,
        "EMBED: and it knows": victim.cached == set(),
    }


def grant_stub(w: World, a: Any, admission: Admission) -> None:
    """Records the grant; requires all that the proof of `grant` assumes."""
    tokens, computed, known = term(a.tokens), term(a.computed), term(w.own.known)
    require = w.path.require
    require("BUDGET: grants at least 1 token", tokens >= 1)
    require("BUDGET: grants no more than is left", tokens <= term(w.step.budget))
    require("LENGTH: grants inside the model", computed + tokens <= term(w.config.max_model_len))
    require("LAST: something known is computed", computed < known)
    drafts = length(w.own.drafts) if admission is Admission.RUNNING else 0
    require("LAST: nothing unknown is computed", computed + tokens <= known + drafts)
    for name, need in contracts.extend_table_needs(w, a).items():
        require(f"{name} (needed by grant)", need)
    if isinstance(a.hits, Blocks):
        for name, need in contracts.longest_hit(w, a.hits).goals().items():
            require(f"{name} (needed by grant)", need)
        require("KEY: tokens behind the hits", computed >= length(a.hits) * w.block_size)
    w.step.budget = w.step.budget - a.tokens
    w.step.grants.append(Grant("own", admission, a.computed, a.tokens, ()))
    w.grants.append((a, admission))


def preempt_stub(w: World, state: Any, step: Any) -> Any:
    """What `preempt_one` was proved to do: the last one waits in front and holds nothing, the state is lawful."""
    running, pool = state.running, state.pool
    w.path.require("running: not empty when it is popped", running.size >= 1)
    w.path.require("ORDER: nobody is set aside (needed by preempt_one)", nobody_set_aside(w))
    w.path.require("PREEMPTED: nobody scheduled is preempted", running.size - 1 >= term(step.index))
    short = z3.And(term(w.attempt.tokens) >= 1, z3.Not(capacity(w, w.attempt, length(w.own.table))))
    w.path.require("PREEMPTED: only while the pool is too small", short)
    victim = running.pop()
    state.waiting.appendleft(victim)
    step.preempted.append(victim.request.request_id)
    victim.status, victim.table, victim.computed, victim.published = Status.PREEMPTED, [], 0, 0
    for container in (pool.refs, pool.free, pool.key_of, pool.holders):
        container.havoc()
    w.assume_invariants()
    return victim


def _visit(w: World) -> Any:
    w.grants = []
    w.step.preempted = Tokens(w.path.integer("preempted before"))
    w.path.assume(term(w.own.computed) < term(w.own.known), term(w.step.budget) >= 1, nobody_set_aside(w))
    w.before, w.numbers = w.cells(), numbers(w)
    w.modules.running.visit_one_running(w.state, w.step)
    return None


def _one_visited(w: World, _: Any) -> Goals:
    log = [how for action, how in w.state.log if action == "visit"]
    itself, nothing = log == ["preempted itself"], log == ["nothing to compute"]
    granted = not itself and not nothing
    goals: Goals = {
        "PROGRESS: it is granted, or it preempted itself, or stops before an item": len(w.grants) == granted
        and len(log) == (not granted)
        and (not nothing or bool(w.own.request.items)),
        "PROGRESS: it is granted what it asks for": all(
            a.live is w.own and x is Admission.RUNNING for a, x in w.grants
        ),
        "PROGRESS: the next one is visited": term(w.step.index) == w.before["visited"] + (0 if itself else 1),
    }
    left = w.state.running.size
    goals["PREEMPTED: who preempted itself was the last"] = (
        left == w.before["visited"] if itself else left > w.before["visited"]
    )
    return {**goals, **visited(w.numbers, numbers(w))}


VISIT_PARTS: Parts = {
    "running.demand_of_running": demand_of_running_stub,
    "allocation.grant": grant_stub,
    "running.preempt_one": preempt_stub,
}
CASES: tuple[Case, ...] = (
    Case("running.VISIT", _visit_guard, _visited, NUMBERS),
    Case("running.demand_of_running", _demand, _demanded, NUMBERS),
    Case(
        "running.demand_of_running, items",
        _demand_with_items,
        _demanded_with_items,
        {**NUMBERS, "items": 1},
        contracts={"encoder.choose_items": contracts.choose_items_stub},
    ),
    Case("allocation.ALLOCATE", _guard, _judged, NUMBERS),
    Case("running.preempt_one", _preempt, _preempted),
    Case("running.preempt_one, items", _preempt_items, _items_freed, {"items": 1}, bounded="one encoder item"),
    Case("running.visit_one_running", _visit, _one_visited, contracts=VISIT_PARTS),
    Case("running.visit_one_running, items", _visit, _one_visited, {"items": 1}, contracts=VISIT_PARTS),
)
