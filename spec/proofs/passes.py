"""The two passes of a step: what a request asks for, whether it gets it, who is preempted, who is admitted."""

from __future__ import annotations

from typing import Any

import z3

from spec.proofs import contracts
from spec.proofs.allocating import (
    GRANT_PARTS,
    NUMBERS,
    WAITS,
    Parts,
    adopt,
    attempt_of,
    frame_of_other,
    grantable,
    plan_entry,
    written,
)
from spec.proofs.cases import Case, Goals
from spec.proofs.contracts import unchanged
from spec.proofs.invariants import length
from spec.proofs.loops import Invariant
from spec.proofs.maps import Blocks, Tokens
from spec.proofs.paths import Cut
from spec.proofs.value import Number, term
from spec.proofs.world import World
from spec.vocabulary import Admission, Status

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


# --- running -------------------------------------------------------------------------------------


def _demand(w: World) -> Any:
    w.path.assume(term(w.own.computed) < term(w.own.known), term(w.step.budget) >= 1)
    w.before = w.cells()
    return w.modules.running.demand_of_running(w.state, w.step, w.own)


def _demanded(w: World, a: Any) -> Goals:
    return {**_cut(w, a), **unchanged(w, w.before, Invariant([]))}


def demand_of_running_stub(w: World, state: Any, step: Any, live: Any) -> Any:
    """What `demand_of_running` was proved to answer, with or without items."""
    w.path.require("PROGRESS: budget is left (needed by demand_of_running)", term(step.budget) >= 1)
    w.path.require("LAST: something is known (needed by demand_of_running)", term(live.computed) < term(live.known))
    a = attempt_of(w, live.computed)
    a.needed = Number(w.path.integer("needed"))
    w.path.assume(*(_cut_by_items(w, a) if live.request.items else _cut(w, a)).values())
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
        **_cut_by_items(w, a),
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


def _preempt(w: World) -> Any:
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
        for name, need in contracts.checked(w, contracts.longest_hit(w, a.hits)).items():
            require(f"{name} (needed by grant)", need)
        require("KEY: tokens behind the hits", computed >= length(a.hits) * w.block_size)
    w.grants.append((a, admission))


def preempt_stub(w: World, state: Any, step: Any) -> Any:
    """Any state in which the invariant holds, and one request less running; the next call needs no second look."""
    if w.preemptions:
        raise Cut
    w.preemptions += 1
    running, pool = state.running, state.pool
    w.path.require("running: not empty when it is popped", running.size >= 1)
    w.path.require("PREEMPTED: nobody scheduled is preempted", running.size - 1 >= term(step.index))
    itself = w.path.choose(w.place == running.size - 1)
    running.size = running.size - 1
    for container in (pool.refs, pool.free, pool.key_of, pool.holders):
        container.havoc()
    if itself:
        return w.own
    w.assume_invariants()
    return w.other


def _visit(w: World) -> Any:
    w.grants, w.preemptions = [], 0
    w.path.assume(term(w.own.computed) < term(w.own.known), term(w.step.budget) >= 1)
    w.before = w.cells()
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
    return goals


# --- waiting -------------------------------------------------------------------------------------


def _admissions(w: World) -> Any:
    w.step.preempted = Tokens(w.path.integer("preempted"))
    w.state.waiting.size = w.path.integer("any waiting")
    w.path.assume(w.state.waiting.size >= 0)
    w.path.assume(w.step.preempted.size >= 0)
    w.before = w.cells()
    return w.modules.waiting.ADMISSIONS.refusal((w.state, w.step))


def _open(w: World, refusal: Any) -> Goals:
    reasons = {
        "preempted": w.step.preempted.size > 0,
        "queue empty": w.state.waiting.size == 0,
        "budget": term(w.step.budget) <= 0,
        "seats": w.state.running.size >= term(w.config.max_num_seqs),
    }
    true = reasons[refusal.name] if refusal else z3.Not(z3.Or(*reasons.values()))
    return {
        "SEATS: admits if and only if nothing forbids it": true,
        **unchanged(w, w.before, Invariant([])),
    }


def _examine(w: World) -> Any:
    if w.path.choose(w.path.truth("waits for its grammar")):
        w.own.status = Status.WAITING_FOR_GRAMMAR
    w.status, w.before = w.own.status, w.cells()
    return w.modules.waiting.examine_one(w.state, w.step)


def _examined(w: World, passed: bool) -> Goals:
    adapter, ready = term(w.own.request.lora_id), term(w.own.grammar_ready)
    if w.status is not Status.WAITING_FOR_GRAMMAR:
        ready = z3.BoolVal(True)
    room = z3.Or(adapter == 0, w.step.adapters.member[adapter], w.step.adapters.size < term(w.config.max_loras))
    right = z3.And(ready, room)
    return {
        "SEATS: passes if and only if grammar and adapter allow": right if passed else z3.Not(right),
        "STATE: set aside, or still in front": (w.own in w.state.waiting.present) == passed
        and w.step.skipped == ([] if passed else [w.own]),
        "STATE: a grammar that is ready was noticed": (w.own.status is Status.WAITING)
        if passed
        else (w.own.status is w.status),
        **unchanged(w, w.before, Invariant([], {"waiting": lambda: None, "own waits or runs": lambda: None})),
    }


def _ask(w: World) -> Any:
    w.path.assume(term(w.step.budget) >= 1)
    w.before = w.cells()
    return w.modules.waiting.demand_of_waiting(w.state, w.step, w.own)


def _asked(w: World, a: Any) -> Goals:
    counted = a.hits.totals[0][1] if isinstance(a.hits, Blocks) and a.hits.totals else z3.IntVal(0)
    none = isinstance(a.hits, list) or bool(a.hits.totals)
    return {
        "POOL: free hits are counted": none and term(a.evictable) == counted,
        **_answered(w, a),
        **unchanged(w, w.before, Invariant([w.own.keys])),
    }


def _asked_with_items(w: World, a: Any) -> Goals:
    most = _answered(w, a)["BUDGET: tokens are cut by threshold and budget"].arg(1)
    return {
        "BUDGET: never more than without items": term(a.tokens) <= most,
        "BUDGET: never negative": term(a.tokens) >= 0,
        "EMBED: tokens stop before an item that cannot be computed": a.chosen is not None
        and term(a.tokens) == term(a.chosen.tokens),
        **needed_blocks(w, a, length(a.hits)),
    }


def _answered(w: World, a: Any) -> Goals:
    hits, size, known = length(a.hits), w.block_size, term(w.own.known)
    external = term(w.own.request.external_tokens)
    computed = z3.If(external > hits * size, external, hits * size)
    return {
        "KEY: hits and external tokens count as computed": term(a.computed) == computed,
        "KEY: external tokens stand behind the hits": term(a.external) == computed - hits * size,
        "BUDGET: tokens are cut by threshold and budget": term(a.tokens)
        == least(threshold(w, known - computed), term(w.step.budget)),
        "PROGRESS: something is asked for": term(a.tokens) >= 1,
        **needed_blocks(w, a, hits),
    }


def _admit(w: World) -> Any:
    w.grants = []
    w.path.assume(term(w.step.budget) >= 1, w.state.running.size < term(w.config.max_num_seqs))
    if w.path.choose(w.path.truth("was preempted")):
        w.own.status = Status.PREEMPTED
    w.status, w.before = w.own.status, w.cells()
    w.adapters = w.step.adapters.size
    return w.modules.waiting.admit_one(w.state, w.step)


def _admitted(w: World, refusal: Any) -> Goals:
    now, before, adapter = w.cells(), w.before, term(w.own.request.lora_id)
    if refusal is not None:
        a = w.attempt
        fits = capacity(w, a, length(a.hits))
        short = z3.And(term(a.tokens) > 0, z3.Not(fits))
        stops = term(a.tokens) == 0 if w.own.request.items else z3.BoolVal(False)
        return {
            "POOL: refused for the reason that it tells": {"pool": short, "nothing to compute": stops}[refusal.name],
            "POOL: and granted nothing": not w.grants,
            "STATE: it still waits in front": w.own in w.state.waiting.present and w.own.status is w.status,
            **unchanged(w, before, Invariant([w.own.keys])),
        }
    a, admission = w.grants[0]
    resumed = w.status is Status.PREEMPTED
    return {
        "POOL: the tokens fit": capacity(w, a, length(a.hits)),
        "SEATS: no more than there are": now["running"] <= term(w.config.max_num_seqs),
        "STATE: it runs": w.own.status is Status.RUNNING
        and w.state.running.joined == [("back", w.own)]
        and w.own not in w.state.waiting.present,
        "STATE: one runs more, one waits less": z3.And(
            now["running"] == before["running"] + 1, now["waiting"] == before["waiting"] - 1
        ),
        "STATE: the plan says how it came": len(w.grants) == 1
        and admission is (Admission.RESUMED if resumed else Admission.NEW),
        "COVER: computed counts hits and external tokens": now["own computed"] == term(a.computed),
        "SEATS: its adapter is in use": z3.Or(adapter == 0, w.step.adapters.member[adapter]),
        **{f"ATOMIC: {cell} stays": now[cell] == old for cell, old in before.items() if cell.startswith("other ")},
    }


def demand_stub(w: World, state: Any, step: Any, live: Any) -> Any:
    """What `demand_of_waiting` was proved to answer."""
    w.path.require("PROGRESS: budget is left (needed by demand_of_waiting)", term(step.budget) >= 1)
    a = attempt_of(w, Number(w.path.integer("computed")))
    a.hits = contracts.longest_hit_stub(w, state, live)
    a.evictable = w.modules.pool.evictable(state.pool, a.hits) if a.hits else 0
    a.external, a.needed = Number(w.path.integer("external")), Number(w.path.integer("needed"))
    goals = _answered(w, a)
    if live.request.items:
        goals.pop("PROGRESS: something is asked for")
        goals["BUDGET: tokens are cut by threshold and budget"] = term(a.tokens) >= 0
        most = _answered(w, a)["BUDGET: tokens are cut by threshold and budget"].arg(1)
        goals["BUDGET: never more than without items"] = term(a.tokens) <= most
    w.path.assume(*goals.values())
    w.attempt = a
    return a


def _grant_admission(w: World) -> Any:
    """As `admit_one` calls it: own runs by now, its computed tokens are its hits and external tokens."""
    a = attempt_of(w, Number(w.path.integer("computed")))
    adopt(w, a)
    hits = a.hits
    w.path.assume(a.computed.term >= hits.size * w.block_size, a.computed.term >= 0, hits.size <= w.own.keys.size)
    if not w.state.config.enable_prefix_caching:
        w.path.assume(hits.size == 0)
    w.own.status, w.own.computed = Status.RUNNING, a.computed
    grantable(w, a)
    w.path.assume(a.computed.term + a.tokens.term <= term(w.own.known))
    a.needed = Number(w.path.integer("needed"))
    w.path.assume(*contracts.extend_table_needs(w, a).values())
    w.before, w.has_before = w.cells(), w.state.pool.key_of.has
    w.admission = Admission.RESUMED if w.path.choose(w.path.truth("was preempted")) else Admission.NEW
    w.modules.allocation.grant(a, w.admission)
    written(w, a)
    return a


def _granted(w: World, a: Any) -> Goals:
    goals = plan_entry(w, a)
    goals.pop("LAST: drafts are what stands behind the known tokens")
    goals.pop("KEY: drafts complete no block")
    entry = w.step.grants[-1]
    hits = length(a.hits)
    return {
        **w.holds_now(),
        **goals,
        **frame_of_other(w),
        "LAST: drafts wait": length(entry.drafts) == 0,
        "STATE: the plan says how it came": entry.admission is w.admission,
        "KEY: only complete blocks are published": z3.Or(
            term(w.own.published) * w.block_size <= w.own.end, term(w.own.published) == hits
        ),
        "CONTENT: the plan names the whole table": length(entry.blocks) == length(w.own.table),
    }


VISIT_PARTS: Parts = {
    "running.demand_of_running": demand_of_running_stub,
    "allocation.grant": grant_stub,
    "running.preempt_one": preempt_stub,
}
ADMIT_PARTS: Parts = {"waiting.demand_of_waiting": demand_stub, "allocation.grant": grant_stub}
HIT: Parts = {"prefix.longest_hit": contracts.longest_hit_stub}

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
    Case("waiting.ADMISSIONS", _admissions, _open, {**WAITS, **NUMBERS}),
    Case("waiting.examine_one", _examine, _examined, {**WAITS, **NUMBERS, "adapter": True}),
    Case("waiting.demand_of_waiting", _ask, _asked, WAITS, contracts=HIT),
    Case(
        "waiting.demand_of_waiting, items",
        _ask,
        _asked_with_items,
        {**WAITS, "items": 1},
        contracts={**HIT, "encoder.choose_items": contracts.choose_items_stub},
    ),
    Case("waiting.admit_one", _admit, _admitted, {**WAITS, "adapter": True}, contracts=ADMIT_PARTS),
    Case("waiting.admit_one, items", _admit, _admitted, {**WAITS, "items": 1}, contracts=ADMIT_PARTS),
    Case("allocation.grant, admission", _grant_admission, _granted, WAITS, contracts=GRANT_PARTS),
)
