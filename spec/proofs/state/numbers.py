"""The numbers of a step: how many run, wait, are set aside, were visited; what was granted, what is left.

What a visit, an examination and an admission do to them is said here once: their own cases prove it, the case of the
whole step assumes it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import z3

from spec.proofs.state.invariants import length
from spec.proofs.symbols import paths
from spec.proofs.symbols.lists import Tokens
from spec.proofs.symbols.loops import Loop, Walk
from spec.proofs.symbols.value import Number, term
from spec.vocabulary import Grant

Term = Any
World = Any
Facts = dict[str, Term]


class Tally:
    """The grants of a step: how many, of how many tokens together, and which of them own has, if it has one."""

    copy_symbolic = True

    def __init__(self, size: Term, tokens: Term) -> None:
        self.size, self.tokens = size, tokens
        self.own: tuple[Term, Grant] | None = None
        self.other: Grant | None = None

    def length(self) -> Number:
        return Number(self.size)

    def copy(self) -> Tally:
        return self

    def __iter__(self) -> Walk:
        return Walk(self, Loop(sys._getframe(1), z3.IntVal(0), self.size))

    def __getitem__(self, index: Any) -> Grant | None:
        if self.own is not None and paths.current().choose(self.own[0] == term(index)):
            return self.own[1]
        return self.other


class Numbers(NamedTuple):
    """One moment of a step."""

    running: Term
    waiting: Term
    aside: Term
    visited: Term
    preempted: Term
    budget: Term
    grants: Term
    tokens: Term


def numbers(w: World) -> Numbers:
    step, state = w.step, w.state
    granted = step.grants.tokens if isinstance(step.grants, Tally) else _tokens(step.grants)
    return Numbers(
        state.running.size,
        state.waiting.size,
        step.skipped.size,
        term(step.index),
        length(step.preempted),
        term(step.budget),
        length(step.grants),
        granted,
    )


def _tokens(grants: list[Any]) -> Term:
    return z3.Sum([z3.IntVal(0), *(term(each.tokens) for each in grants)])


def become(w: World) -> Numbers:
    """The numbers are now any; where requests stand is not told."""
    new = Numbers(*(w.path.integer(f"{field} now") for field in Numbers._fields))
    w.path.assume(*(each >= 0 for each in new if each is not new.budget))
    w.state.running.size, w.state.waiting.size, w.step.skipped.size = new.running, new.waiting, new.aside
    w.step.index, w.step.budget = Number(new.visited), Number(new.budget)
    w.step.preempted, w.step.grants = Tokens(new.preempted), Tally(new.grants, new.tokens)
    return new


# --- what each action does to them ---------------------------------------------------------------


def charged_so_far(w: World, now: Numbers) -> Facts:
    """Since the step began."""
    some = z3.If(now.grants == 0, now.tokens == 0, now.tokens >= now.grants)
    return {
        "BUDGET: what is left and what was granted is the budget": now.budget + now.tokens
        == term(w.config.max_num_batched_tokens),
        "BUDGET: never negative, no grant is empty": z3.And(now.budget >= 0, some),
    }


def charged(before: Numbers, now: Numbers) -> Facts:
    grants, tokens = now.grants - before.grants, now.tokens - before.tokens
    return {
        "BUDGET: what is granted is charged": now.budget + now.tokens == before.budget + before.tokens,
        "BUDGET: never negative": now.budget >= 0,
        "BUDGET: no grant is empty": z3.If(grants == 0, tokens == 0, tokens >= grants),
    }


def visited(before: Numbers, now: Numbers) -> Facts:
    """One visit, with the preemptions that it took."""
    granted = z3.And(now.grants == before.grants + 1, now.visited == before.visited + 1)
    passed_over = z3.And(now.grants == before.grants, now.visited == before.visited + 1)
    preempted_itself = z3.And(now.grants == before.grants, now.visited == before.visited, now.running == now.visited)
    return {
        **charged(before, now),
        "STATE: nobody is lost": now.running + now.waiting == before.running + before.waiting,
        "STATE: nobody is set aside": now.aside == before.aside,
        "STATE: granted, passed over, or preempted": z3.Or(granted, passed_over, preempted_itself),
        "PREEMPTED: the step says who": now.running + now.preempted == before.running + before.preempted,
        "PREEMPTED: only who was not visited": z3.And(now.running >= now.visited, now.running <= before.running),
    }


def examined(before: Numbers, now: Numbers, passed: bool) -> Facts:
    one = 0 if passed else 1
    expected = before._replace(waiting=before.waiting - one, aside=before.aside + one)
    return {"STATE: passed, or set aside": _equal(now, expected)}


def admitted(w: World, before: Numbers, now: Numbers, granted: bool) -> Facts:
    if not granted:
        return {"STATE: nothing changes": _equal(now, before)}
    expected = before._replace(
        running=before.running + 1,
        waiting=before.waiting - 1,
        grants=before.grants + 1,
        budget=now.budget,
        tokens=now.tokens,
    )
    return {
        **charged(before, now),
        "STATE: one runs more, one waits less, and it was granted something": _equal(now, expected),
        "SEATS: no more than there are": now.running <= term(w.config.max_num_seqs),
    }


def _equal(one: Numbers, two: Numbers) -> Term:
    return z3.And(*(a == b for a, b in zip(one, two, strict=True)))
