"""A counterexample that is the same on any machine: the smallest one, number by number.

What a solver answers first depends on everything that it was asked before.  So the numbers that a counterexample is
told in are fixed one after the other, in the order in which they are told, each to the smallest value with which the
refutation still stands: 0, 1, 2, ..., then -1, -2, ...; `no` before `yes`.  The block size comes first, for with it
every product of the questions is linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import z3

Term = Any

RLIMIT = 2_000_000
"""Solver resources for one question; what it does not decide is taken as no, and a larger number is told."""
FIRST = "block_size"
ONE_BY_ONE = 8
"""Up to here each number is tried; beyond, the range is halved."""


@dataclass(frozen=True)
class Witness:
    """The numbers of a counterexample.

    values   by name: before the action, and where the check failed
    about    the names that the failed goal speaks of
    """

    values: dict[str, tuple[str, str]]
    about: tuple[str, ...]


def smallest(assumed: Sequence[Term], told: Mapping[str, tuple[Term, Term]], goal: Term, model: z3.ModelRef) -> Witness:
    """The smallest counterexample of `goal` under what is assumed; `model` is any."""
    search = _Search(assumed, model)
    names = [FIRST, *(name for name in told if name != FIRST)] if FIRST in told else list(told)
    for which in (0, 1):  # all that was before comes before what became of it
        for name in names:
            search.fix(told[name][which])
    values = {name: (search.value(old), search.value(new)) for name, (old, new) in told.items()}
    spoken_of = _symbols(goal)
    about = tuple(name for name, pair in told.items() if any(_symbols(each) & spoken_of for each in pair))
    return Witness(values, about)


class _Search:
    """Some model, and what was fixed of it so far."""

    def __init__(self, assumed: Sequence[Term], model: z3.ModelRef) -> None:
        self.solver = z3.Solver()
        self.solver.set("random_seed", 0)
        self.solver.set("rlimit", RLIMIT)
        self.solver.add(*assumed)
        self.model = model

    def value(self, term: Term) -> str:
        found = self.model.eval(term, model_completion=True)
        return found.as_string() if z3.is_string_value(found) else str(found)

    def fix(self, term: Term) -> None:
        """Adds that `term` has the smallest value that it can have."""
        if z3.is_bool(term):
            fixed = term if self._is_true(term) and not self._can(z3.Not(term)) else z3.Not(term)
        elif z3.is_int(term):
            fixed = term == self._least(term)
        else:
            return
        if not z3.is_true(z3.simplify(fixed)):
            self.solver.add(fixed)

    def _least(self, term: Term) -> int:
        if self._number(term) < 0 and not self._can(term >= 0):
            return -self._least_from(-term, 1)
        return self._least_from(term, 0)

    def _least_from(self, term: Term, low: int) -> int:
        """The least value from `low` on, for a term whose value in the model is at least that."""
        while low < (high := self._number(term)):
            if low < ONE_BY_ONE:
                if self._can(term == low):
                    return low
                low += 1
            elif not self._can(z3.And(term >= low, term <= (middle := (low + high) // 2))):
                low = middle + 1
        return high

    def _number(self, term: Term) -> int:
        found = self.model.eval(term, model_completion=True)
        return int(found.as_long())

    def _is_true(self, term: Term) -> bool:
        return bool(z3.is_true(self.model.eval(term, model_completion=True)))

    def _can(self, term: Term) -> bool:
        """Whether there is a counterexample in which `term` holds besides; if so it is the model from now on."""
        if self.solver.check(term) != z3.sat:
            return False
        self.model = self.solver.model()
        return True


def _symbols(term: Term) -> set[int]:
    """The numbers and truth values that a term is made of, by id; arrays are none."""
    found, open_terms, seen = set(), [term], set()
    while open_terms:
        each = open_terms.pop()
        if each.get_id() in seen:
            continue
        seen.add(each.get_id())
        if z3.is_quantifier(each):
            open_terms.append(each.body())
        elif z3.is_const(each) and each.decl().kind() == z3.Z3_OP_UNINTERPRETED and not z3.is_array(each):
            found.add(each.get_id())
        else:
            open_terms.extend(each.children())
    return found
