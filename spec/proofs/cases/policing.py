"""The lawful variant of a release policy is proved; the unlawful one is among the counterexamples."""

from __future__ import annotations

from typing import Any

import z3

from spec.proofs.cases.allocating import attempt_of, frame_of_other, grantable
from spec.proofs.cases.answering import RELEASE
from spec.proofs.cases.case import Case, Goals
from spec.proofs.state import contracts, loop_invariants
from spec.proofs.state.invariants import length
from spec.proofs.state.world import World
from spec.proofs.symbols.value import Number, term
from spec.vocabulary import Admission, Grant, Status

Term = Any


def _publish_then_preempt(policy: str) -> Any:
    """A running request is granted tokens, its complete blocks are published; then the policy takes the grant back."""

    def act(w: World) -> Any:
        a = attempt_of(w, w.own.computed)
        grantable(w, a)
        w.path.assume(term(w.config.enable_prefix_caching))
        w.path.assume(term(a.computed) + a.tokens.term <= w.own.table.size * w.block_size)
        contracts.publish_stub(w, w.state, w.own, a.computed, a.tokens)
        w.step.budget = w.step.budget - a.tokens
        entry = Grant("own", Admission.RUNNING, a.computed, a.tokens, ())
        w.step.grants.append(entry)
        w.before, w.victim_table = w.cells(), w.own.table
        getattr(w.modules.policies, policy)(w.state, w.step, w.own, entry)
        return entry

    return act


def _nothing_written(w: World, entry: Any) -> Goals:
    """The grant is gone, so nothing of it is written: `due` is what it was."""
    return {
        **w.holds_now(),
        **frame_of_other(w),
        "BUDGET: the tokens are refunded": term(w.step.budget) == w.before["budget left"] + term(entry.tokens),
        "PREEMPTED: nothing of it is in the plan": w.step.grants == [],
        "PREEMPTED: the step says so": w.step.preempted == ["own"],
        "STATE: it waits in front": w.own.status is Status.PREEMPTED
        and w.state.waiting.joined == [("front", w.own)]
        and w.own not in w.state.running.present,
    }


def _withdraw(w: World) -> Any:
    first = Number(w.path.integer("first place"))
    w.path.assume(*_withdraw_needs(w, first).values())
    w.before, w.promise = w.cells(), loop_invariants.withdrawn(w, first.term, lambda: term(w.own.published))
    w.modules.policies.withdraw_from(w.state, w.own, first)
    return None


def _withdrawn(w: World, _: Any) -> Goals:
    return {**w.promise.goals(), **contracts.unchanged(w, w.before, w.promise)}


LAWFUL_TO_WITHDRAW = (
    "KEY: what own published has a key",
    "KEY: holders are who has the key",
    "KEY: holders are who has the key, under any key",
    "KEY: a key that is there has a holder",
    "WRITE: own holds a block once",
)


def _withdraw_needs(w: World, first: Any) -> Goals:
    inside = z3.And(term(first) >= 0, term(w.own.published) <= length(w.own.table))
    return {**contracts.lawful(w, LAWFUL_TO_WITHDRAW), "KEY: places are in the table": inside}


def withdraw_stub(w: World, state: Any, live: Any, first: Any) -> None:
    contracts.require(w, _withdraw_needs(w, first), "withdraw_from")
    loop_invariants.withdrawn(w, term(first), lambda: term(live.published)).suppose()


def case(policy: str) -> Case:
    return Case(
        f"policies.{policy}",
        _publish_then_preempt(policy),
        _nothing_written,
        contracts={**RELEASE, "policies.withdraw_from": withdraw_stub},
    )


CASES: tuple[Case, ...] = (
    Case("policies.withdraw_from", _withdraw, _withdrawn),
    case("preempt_scheduled_lawfully"),
)
