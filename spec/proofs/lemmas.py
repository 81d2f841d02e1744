"""The counting lemmas, each proved by induction: the empty container has it, and every update keeps it.

They are what `maps` assumes of a count.  A lemma is a predicate of a container; its steps are the updates that `maps`
makes.  `broken` gives a lemma whose step is wrong, to show that the proof notices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

Term = Any
INT, BOOL = z3.IntSort(), z3.BoolSort()


@dataclass(frozen=True)
class Lemma:
    """A sentence and the questions whose answer must be `unsat`."""

    name: str
    sentence: str
    questions: Callable[[], list[Term]]


def refuted(lemma: Lemma) -> bool | None:
    """Whether some step of the induction fails; None if the solver does not know."""
    for question in lemma.questions():
        solver = z3.Solver()
        solver.set("rlimit", 5_000_000)
        solver.add(question)
        answer = solver.check()
        if answer != z3.unsat:
            return True if answer == z3.sat else None
    return False


def _set(delta: int = 1) -> list[Term]:
    """`size >= 0`, and it is above 0 if there is a member; by the number of members outside of one."""
    x, y = z3.Ints("x y")
    member, others = z3.Const("member", z3.ArraySort(INT, BOOL)), z3.Int("others")
    size = z3.Int("size")
    # size = (1 if x is in it) + others, where others counts the rest and is never negative
    holds = z3.And(others >= 0, size == z3.If(member[x], 1, 0) + others)
    claim = z3.And(size >= 0, z3.Implies(member[x], size >= 1))
    added, grown = z3.Store(member, y, True), size + z3.If(member[y], 0, delta)
    rest = others + z3.If(z3.Or(y == x, member[y]), 0, 1)
    removed, shrunk = z3.Store(member, y, False), size - 1
    less = others - z3.If(y == x, 0, 1)
    present_rest = z3.Implies(z3.And(member[y], y != x), others >= 1)
    return [
        z3.And(holds, z3.Not(claim)),
        z3.And(holds, z3.Not(z3.And(rest >= 0, grown == z3.If(added[x], 1, 0) + rest))),
        z3.And(holds, member[y], present_rest, z3.Not(z3.And(less >= 0, shrunk == z3.If(removed[x], 1, 0) + less))),
    ]


def _list(delta: int = 1) -> list[Term]:
    """Occurrences, places and length of a list: empty, and with one element more behind."""
    x, i, new, size = z3.Ints("x i new size")
    at, count, where = (z3.Array(name, INT, INT) for name in ("at", "count", "where"))

    def holds(size: Term, at: Term, count: Term, where: Term, x: Term, i: Term) -> Term:
        place = z3.And(where[x] >= 0, where[x] < size, at[where[x]] == x)
        at_place = z3.Implies(count[at[i]] <= 1, where[at[i]] == i)
        return z3.And(
            size >= 0,
            count[x] >= 0,
            z3.Implies(count[x] >= 1, place),
            z3.Implies(z3.And(i >= 0, i < size), z3.And(count[at[i]] >= 1, at_place)),
        )

    empty = z3.K(INT, z3.IntVal(0))
    before = [holds(size, at, count, where, a, b) for a in (x, new, at[i]) for b in (i, where[x])]
    longer = z3.Store(at, size, new), z3.Store(count, new, count[new] + delta), z3.Store(where, new, size)
    return [
        z3.Not(holds(z3.IntVal(0), at, empty, where, x, i)),
        z3.And(*before, z3.Not(holds(size + 1, *longer, x, i))),
    ]


def _total() -> list[Term]:
    """A sum over a list moves by the summand of what comes in; summands of 0 or 1 keep it between 0 and the length."""
    total, size, summand = z3.Ints("total size summand")
    between = z3.And(total >= 0, total <= size)
    return [
        z3.Not(z3.And(z3.IntVal(0) <= 0, z3.IntVal(0) <= 0)),
        z3.And(between, summand >= 0, summand <= 1, z3.Not(z3.And(total + summand >= 0, total + summand <= size + 1))),
    ]


def _pool() -> list[Term]:
    """Free and held blocks add up to the usable ones: by the number of blocks that were looked at."""
    free, held, seen = z3.Ints("free held seen")
    is_free, is_held = z3.Bools("is_free is_held")
    add: Callable[[Term, Term], Term] = lambda n, b: n + z3.If(b, 1, 0)  # noqa: E731
    step = add(free, is_free) + add(held, is_held) == seen + 1
    return [z3.And(free + held == seen, is_free == z3.Not(is_held), z3.Not(step))]


def _references() -> list[Term]:
    """References and occurrences are two counts that change by the same amount, so they stay equal."""
    references, occurrences, old, new = z3.Ints("references occurrences old new")
    return [z3.And(references == occurrences, references + new - old != occurrences + new - old)]


def _parts() -> list[Term]:
    """A sum of numbers that are never negative is at least the sum of two of its summands."""
    total, rest, one, two, new, old = z3.Ints("total rest one two new old")
    holds = z3.And(rest >= 0, total == one + two + rest)
    moved = z3.And(rest + new - old >= 0, total + new - old == one + two + (rest + new - old))
    return [
        z3.And(holds, z3.Not(total >= one + two)),
        z3.And(holds, old >= 0, old <= rest, new >= 0, z3.Not(moved)),
    ]


LEMMAS: tuple[Lemma, ...] = (
    Lemma("SET", "a set that counts 0 has no member; one that counts more has one", _set),
    Lemma("MEMBERS", "what occurs in a list has a place, and what stands at a place occurs; once, only there", _list),
    Lemma("TOTAL", "a sum of zeros and ones over a list lies between 0 and its length", _total),
    Lemma("PARTITION", "free and held blocks add up to the usable ones", _pool),
    Lemma("REFERENCES", "two totals that change by the same amount stay equal", _references),
    Lemma("PARTS", "a total of what is never negative is at least any two of its parts", _parts),
)

BROKEN: tuple[Lemma, ...] = (
    Lemma("SET", "an addition counts 2", lambda: _set(2)),
    Lemma("SET", "an addition counts nothing", lambda: _set(0)),
    Lemma("MEMBERS", "what is appended does not occur", lambda: _list(0)),
    Lemma("MEMBERS", "what is appended occurs a time less", lambda: _list(-1)),
)
"""Lemmas that are wrong: the self-test sees each refuted."""
