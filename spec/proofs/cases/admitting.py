"""Cases: the waiting pass: who is examined, what it asks for, who is admitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.cases.allocating import (
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
from spec.proofs.cases.case import Case, Goals
from spec.proofs.cases.visiting import capacity, grant_stub, least, needed_blocks, threshold
from spec.proofs.state import contracts
from spec.proofs.state.contracts import unchanged
from spec.proofs.state.invariants import length
from spec.proofs.state.numbers import admitted, examined, numbers
from spec.proofs.state.world import World
from spec.proofs.symbols.lists import Tokens
from spec.proofs.symbols.loops import Invariant
from spec.proofs.symbols.queues import Bystander, keeps_order, moved
from spec.proofs.symbols.value import Number, term
from spec.vocabulary import Admission, Status

Term = Any


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
    for status in (Status.PREEMPTED, Status.WAITING_FOR_GRAMMAR):
        if w.own.status is Status.WAITING and w.path.choose(w.path.truth(status.value)):
            w.own.status = status
    w.status, w.before, w.numbers = w.own.status, w.cells(), numbers(w)
    return w.modules.waiting.examine_one(w.state, w.step)


def _examined(w: World, passed: bool) -> Goals:
    adapter, ready = term(w.own.request.lora_id), term(w.own.grammar_ready)
    if w.status is not Status.WAITING_FOR_GRAMMAR:
        ready = z3.BoolVal(True)
    room = z3.Or(adapter == 0, w.step.adapters.member[adapter], w.step.adapters.size < term(w.config.max_loras))
    right = z3.And(ready, room)
    frame = Invariant([], dict.fromkeys(("waiting", "set aside", "own waits or runs"), lambda: None))
    return {
        "SEATS: passes if and only if grammar and adapter allow": right if passed else z3.Not(right),
        "STATE: set aside, or still in front": (w.own in w.state.waiting.present) == passed
        and w.step.skipped.present == ([] if passed else [w.own]),
        "STATE: a grammar that is ready was noticed": w.own.status
        is (Status.WAITING if passed and w.status is Status.WAITING_FOR_GRAMMAR else w.status),
        **keeps_order(w),
        **examined(w.numbers, numbers(w), passed),
        **unchanged(w, w.before, frame),
    }


def _ask(w: World) -> Any:
    w.path.assume(term(w.step.budget) >= 1)
    w.before = w.cells()
    return w.modules.waiting.demand_of_waiting(w.state, w.step, w.own)


def _asked(w: World, a: Any) -> Goals:
    return {
        "POOL: free hits are counted": contracts.counted(a),
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
        "EMBED: items are looked for behind hits and external tokens": w.items_from == term(a.computed),
        "KEY: hits and external tokens count as computed": _answered(w, a)[
            "KEY: hits and external tokens count as computed"
        ],
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
    w.status, w.before, w.numbers = w.own.status, w.cells(), numbers(w)
    w.adapters, w.used = w.step.adapters.size, w.step.adapters.member
    return w.modules.waiting.admit_one(w.state, w.step)


KEPT = ("known", "limit", "drafts size", "grammar ready")
"""What an admission does not change of the request that is admitted."""


def _passes_those_set_aside(w: World) -> Callable[[Any, Term], Term]:
    aside = w.step.skipped

    def by(who: Any, _: Term) -> Term:
        if isinstance(who, Bystander) and who.name == aside.name:
            return z3.IntVal(1)
        return -aside.size if who is w.own else z3.IntVal(0)

    return by


def _admitted(w: World, refusal: Any) -> Goals:
    now, before = w.cells(), w.before
    if refusal is not None:
        a = w.attempt
        fits = capacity(w, a, length(a.hits))
        short = z3.And(term(a.tokens) > 0, z3.Not(fits))
        stops = term(a.tokens) == 0 if w.own.request.items else z3.BoolVal(False)
        return {
            "POOL: refused for the reason that it tells": {"pool": short, "nothing to compute": stops}[refusal.name],
            "POOL: and granted nothing": not w.grants,
            "STATE: it still waits in front": w.own in w.state.waiting.present and w.own.status is w.status,
            **admitted(w, w.numbers, numbers(w), granted=False),
            **unchanged(w, before, Invariant([w.own.keys])),
        }
    a, admission = w.grants[0]
    resumed = w.status is Status.PREEMPTED
    return {
        "POOL: the tokens fit": capacity(w, a, length(a.hits)),
        **admitted(w, w.numbers, numbers(w), granted=True),
        "STATE: it runs": w.own.status is Status.RUNNING
        and w.state.running.joined == [("back", w.own)]
        and w.own not in w.state.waiting.present,
        "STATE: the plan says how it came": len(w.grants) == 1
        and admission is (Admission.RESUMED if resumed else Admission.NEW),
        **moved(w, _passes_those_set_aside(w)),
        "COVER: computed counts hits and external tokens": now["own computed"] == term(a.computed),
        **_one_adapter_more(w),
        **{f"ATOMIC: own {field} stays": now[f"own {field}"] == before[f"own {field}"] for field in KEPT},
        **{f"ATOMIC: {cell} stays": now[cell] == old for cell, old in before.items() if cell.startswith("other ")},
    }


def _one_adapter_more(w: World) -> Goals:
    """Its adapter is in use now, and no other that was not; so there are no more than the cap, if there was room."""
    adapter, other, now = term(w.own.request.lora_id), w.path.integer("an adapter"), w.step.adapters
    own = z3.And(other != 0, other == adapter)
    room = z3.Or(adapter == 0, w.used[adapter], w.adapters < term(w.config.max_loras))
    return {
        "SEATS: its adapter is in use, and no other that was not": now.member[other] == z3.Or(w.used[other], own),
        "SEATS: no more adapters than the cap": z3.Implies(
            z3.And(room, w.adapters <= term(w.config.max_loras)), now.size <= term(w.config.max_loras)
        ),
    }


def demand_stub(w: World, state: Any, step: Any, live: Any) -> Any:
    """What `demand_of_waiting` was proved to answer."""
    w.path.require("PROGRESS: budget is left (needed by demand_of_waiting)", term(step.budget) >= 1)
    a = attempt_of(w, Number(w.path.integer("computed")))
    a.hits = contracts.longest_hit_stub(w, state, live)
    a.evictable = w.modules.pool.evictable(state.pool, a.hits)
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
    adopt(w, a, contracts.longest_hit_stub(w, w.state, w.own))
    behind_the_hits = length(a.hits) * w.block_size
    w.path.assume(a.computed.term >= behind_the_hits)
    w.own.status, w.own.computed = Status.RUNNING, a.computed
    grantable(w, a)
    w.path.assume(a.computed.term + a.tokens.term <= term(w.own.known))
    a.needed, a.external = Number(w.path.integer("needed")), Number(w.path.integer("external"))
    w.path.assume(*contracts.extend_table_needs(w, a).values())
    w.before, w.has_before = w.cells(), w.state.pool.key_of.has
    w.admission = Admission.RESUMED if w.path.choose(w.path.truth("was preempted")) else Admission.NEW
    w.modules.allocation.grant(a, w.admission)
    written(w, a, behind_the_hits)
    return a


def _granted(w: World, a: Any) -> Goals:
    goals = plan_entry(w, a)
    goals.pop("LAST: drafts are what stands behind the known tokens")
    goals.pop("KEY: drafts complete no block")
    entry, hits = w.step.grants[-1], length(a.hits)
    return {
        **w.holds_now(),
        **goals,
        **frame_of_other(w),
        **{f"ATOMIC: own {field} stays": w.cells()[f"own {field}"] == w.before[f"own {field}"] for field in KEPT},
        "LAST: drafts wait": length(entry.drafts) == 0,
        "KEY: only complete blocks are published": z3.Or(
            term(w.own.published) * w.block_size <= w.own.end, term(w.own.published) == hits
        ),
    }


ADMIT_PARTS: Parts = {"waiting.demand_of_waiting": demand_stub, "allocation.grant": grant_stub}
HIT: Parts = {"prefix.longest_hit": contracts.longest_hit_stub}

CASES: tuple[Case, ...] = (
    Case("waiting.ADMISSIONS", _admissions, _open, {**WAITS, **NUMBERS}),
    Case("waiting.examine_one", _examine, _examined, {**WAITS, **NUMBERS, "adapter": True}),
    Case("waiting.demand_of_waiting", _ask, _asked, WAITS, contracts=HIT),
    Case(
        "waiting.demand_of_waiting, items",
        _ask,
        _asked_with_items,
        {"status": Status.PREEMPTED, "items": 1},
        contracts={**HIT, "encoder.choose_items": contracts.choose_items_stub},
    ),
    Case("waiting.admit_one", _admit, _admitted, {**WAITS, "adapter": True}, contracts=ADMIT_PARTS),
    Case("waiting.admit_one, items", _admit, _admitted, {**WAITS, "items": 1}, contracts=ADMIT_PARTS),
    Case("allocation.grant, admission", _grant_admission, _granted, WAITS, contracts=GRANT_PARTS),
)
