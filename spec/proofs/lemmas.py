"""The counting lemmas, each proved by induction: nothing has it, and one thing more keeps it.

A set and a pool are counted by walking over everything that may be in them, a list grows by what is appended, a
total by its summands.  Each induction is about a lemma of `counting`, or about a wrong one, to show that it notices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from spec import counting
from spec.counting import Claim, Claims
from spec.proofs.symbols.logic import formula, one

Term = Any
Predicate = Callable[..., Claims]
Update = Callable[[Term, Term, Term], Term]
INT, BOOL = z3.IntSort(), z3.BoolSort()


@dataclass(frozen=True)
class Lemma:
    """A sentence and the questions whose answer must be `unsat`.

    functions  those of the lemma in `counting`, or wrong ones in their place
    moved      how a count moves
    """

    name: str
    sentence: str
    functions: tuple[Predicate, ...]
    moved: Update = counting.moved

    def questions(self) -> list[Term]:
        return INDUCTIONS[self.name](self.moved, *self.functions)


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


# --- inductions ----------------------------------------------------------------------------------


def _set(moved: Update, counted: Predicate, inhabited: Predicate) -> list[Term]:
    """By what was walked over, `0 .. seen`; and that what comes in or goes moves the count of a walk."""
    seen, size, x, some, y, other_size = z3.Ints("seen size x some y other_size")
    member, now = z3.Const("member", z3.ArraySort(INT, BOOL)), z3.Bool("now")
    after = z3.Store(member, y, now)

    def holds(seen: Term, size: Term, some: Term) -> Term:
        inside = [z3.And(e >= 0, e < seen, member[e]) for e in (x, some)]
        return z3.And(formula(counted(size, inside[0])), formula(inhabited(size, inside[1])))

    def moves(seen: Term, size: Term, other_size: Term) -> Term:
        walked = z3.And(y >= 0, y < seen)
        return other_size == moved(size, one(z3.And(walked, member[y])), one(z3.And(walked, now)))

    grown, other_grown = size + one(member[seen]), other_size + one(after[seen])
    return [
        z3.Not(holds(z3.IntVal(0), z3.IntVal(0), some)),
        z3.And(seen >= 0, holds(seen, size, some), z3.Not(holds(seen + 1, grown, z3.If(member[seen], seen, some)))),
        z3.Not(moves(z3.IntVal(0), z3.IntVal(0), z3.IntVal(0))),
        z3.And(seen >= 0, moves(seen, size, other_size), z3.Not(moves(seen + 1, grown, other_grown))),
    ]


def _pool(_: Update, parted: Predicate) -> list[Term]:
    """By the blocks that were walked over, each either free or held."""
    free, held, seen = z3.Ints("free held seen")
    is_free, is_held = z3.Bools("is_free is_held")
    step = parted(free + one(is_free), held + one(is_held), seen + 1)
    return [
        z3.Not(formula(parted(z3.IntVal(0), z3.IntVal(0), z3.IntVal(0)))),
        z3.And(formula(parted(free, held, seen)), is_free == z3.Not(is_held), z3.Not(formula(step))),
    ]


def _members(moved: Update, occurring: Predicate, standing: Predicate) -> list[Term]:
    """By what is appended: it occurs once more, and its place is the last."""
    x, i, new, size = z3.Ints("x i new size")
    at, count, where = (z3.Array(name, INT, INT) for name in ("at", "count", "where"))

    def holds(size: Term, at: Term, count: Term, where: Term, x: Term, i: Term) -> Term:
        of_x = occurring(size, count[x], where[x], at[where[x]] == x)
        return z3.And(formula(of_x), formula(standing(size, i, count[at[i]], where[at[i]] == i)))

    empty = z3.K(INT, z3.IntVal(0))
    before = [holds(size, at, count, where, a, b) for a in (x, new, at[i]) for b in (i, where[x])]
    longer = z3.Store(at, size, new), z3.Store(count, new, moved(count[new], 0, 1)), z3.Store(where, new, size)
    return [
        z3.Not(holds(z3.IntVal(0), at, empty, where, x, i)),
        z3.And(size >= 0, *before, z3.Not(holds(size + 1, *longer, x, i))),
    ]


def _total(_: Update, summed: Predicate) -> list[Term]:
    """By what is appended, which adds 0 or 1."""
    size, total, summand = z3.Ints("size total summand")
    return [
        z3.Not(formula(summed(z3.IntVal(0), z3.IntVal(0)))),
        z3.And(
            formula(summed(size, total)),
            summand >= 0,
            summand <= 1,
            z3.Not(formula(summed(size + 1, total + summand))),
        ),
    ]


def _once(moved: Update, once: Predicate) -> list[Term]:
    """By what is appended: a member more if it did not occur, else the witness that something occurs twice."""
    size, distinct, new, some = z3.Ints("size distinct new some")
    count = z3.Array("count", INT, INT)
    longer = z3.Store(count, new, moved(count[new], 0, 1))
    witness = z3.If(count[new] >= 1, new, some)
    step = once(size + 1, distinct + one(count[new] == 0), longer[witness])
    return [
        z3.Not(formula(once(z3.IntVal(0), z3.IntVal(0), z3.IntVal(0)))),
        z3.And(formula(once(size, distinct, count[some])), count[new] >= 0, z3.Not(formula(step))),
    ]


def _references(moved: Update, referred: Predicate) -> list[Term]:
    """By one block more or less in a table."""
    references, occurrences, old, new = z3.Ints("references occurrences old new")
    step = referred(moved(references, old, new), moved(occurrences, old, new))
    return [
        z3.Not(formula(referred(z3.IntVal(0), z3.IntVal(0)))),
        z3.And(formula(referred(references, occurrences)), z3.Not(formula(step))),
    ]


def _parts(_: Update, parts: Predicate) -> list[Term]:
    """By the summands that were added, `0 .. seen`; `i` and `j` are any two of them."""
    seen, total, i, j = z3.Ints("seen total i j")
    summand = z3.Array("summand", INT, INT)

    def holds(seen: Term, total: Term) -> Term:
        two = [z3.If(z3.And(e >= 0, e < seen), summand[e], z3.IntVal(0)) for e in (i, j)]
        return z3.And(total >= 0, formula(parts(total, *two)))

    never_negative = z3.And(*(summand[e] >= 0 for e in (seen, i, j)))
    return [
        z3.Not(holds(z3.IntVal(0), z3.IntVal(0))),
        z3.And(seen >= 0, i != j, never_negative, holds(seen, total), z3.Not(holds(seen + 1, total + summand[seen]))),
    ]


INDUCTIONS: dict[str, Callable[..., list[Term]]] = {
    "SET": _set,
    "PARTITION": _pool,
    "MEMBERS": _members,
    "TOTAL": _total,
    "ONCE": _once,
    "REFERENCES": _references,
    "PARTS": _parts,
}

LEMMAS = tuple(Lemma(name, counting.sentence(name), functions) for name, functions in counting.LEMMAS.items())


# --- wrong lemmas --------------------------------------------------------------------------------

WRONG: tuple[tuple[str, str, str, Predicate], ...] = (
    ("SET", "counted", "a set of one has no member", lambda size, inside: (Claim(size >= 2, (inside,)),)),
    ("SET", "inhabited", "a set of none has a member", lambda size, inside: (Claim(inside, (size >= 0,)),)),
    ("PARTITION", "parted", "some block is neither", lambda free, held, usable: (Claim(free + held < usable),)),
    ("PARTITION", "parted", "every block is free", lambda free, held, usable: (Claim(free == usable),)),
    (
        "MEMBERS",
        "occurring",
        "what occurs stands before the last place",
        lambda size, count, place, there: (Claim(place < size - 1, (count >= 1,)),),
    ),
    (
        "MEMBERS",
        "standing",
        "what stands at a place stands only there",
        lambda size, place, count, here: (Claim(here, (place >= 0, place < size)),),
    ),
    (
        "MEMBERS",
        "standing",
        "what stands at a place occurs twice",
        lambda size, place, count, here: (Claim(count >= 2, (place >= 0, place < size)),),
    ),
    ("TOTAL", "summed", "every summand is 1", lambda size, total: (Claim(total == size),)),
    ("TOTAL", "summed", "some summand is 0", lambda size, total: (Claim(total < size, (size >= 1,)),)),
    ("ONCE", "once", "as many members as it is long, always", lambda size, distinct, most: (Claim(distinct == size),)),
    ("ONCE", "once", "one member at most", lambda size, distinct, most: (Claim(distinct <= 1, (most <= 1,)),)),
    (
        "REFERENCES",
        "referred",
        "a block that is referred to occurs once more",
        lambda references, occurrences: (Claim(references < occurrences, (occurrences >= 1,)),),
    ),
    ("PARTS", "parts", "there are only two parts", lambda total, one, two: (Claim(total == one + two),)),
    ("PARTS", "parts", "there is a third part", lambda total, one, two: (Claim(total > one + two, (one >= 1,)),)),
)
"""(lemma, one of its functions, what is wrong, the wrong function)."""


def _broken(name: str, function: str, sentence: str, wrong: Predicate) -> Lemma:
    instead = [wrong if each.__name__ == function else each for each in counting.LEMMAS[name]]
    return Lemma(name, sentence, tuple(instead))


def _miscounted(name: str, sentence: str, moved: Update) -> Lemma:
    return Lemma(name, sentence, counting.LEMMAS[name], moved)


BROKEN: tuple[Lemma, ...] = (
    *(_broken(*row) for row in WRONG),
    _miscounted("SET", "what comes in counts 2", lambda count, was, now: count + 2 * now - was),
    _miscounted("SET", "what goes is still counted", lambda count, was, now: count + now),
    _miscounted("MEMBERS", "what is appended does not occur", lambda count, was, now: count),
    _miscounted("MEMBERS", "what is appended occurs a time less", lambda count, was, now: count - now),
    _miscounted("ONCE", "what is appended does not occur", lambda count, was, now: count),
)
"""Lemmas that are wrong: the self-test sees each refuted."""
