"""The counting lemmas: what a count says of the container that it counts.

Each is a function of plain terms, written once for three readers.  The proofs assume it of the counts of a symbolic
state (`proofs.maps`, `proofs.lists`), prove it by induction (`proofs.lemmas`), and `recount` asks it of the
numbers of every state that is run.  The truth of a symbolic term is not known, so a lemma only compares and adds; what
holds under a condition is a `Claim`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Term = Any
"""A whole number or a truth value, concrete or symbolic."""


class Claim(NamedTuple):
    """`then` holds where all of `when` hold."""

    then: Term
    when: tuple[Term, ...] = ()


Claims = tuple[Claim, ...]


def hold(claims: Claims) -> bool:
    """Whether claims about concrete numbers are true."""
    return all(then or not all(when) for then, when in claims)


def moved(count: Term, was: Term, now: Term) -> Term:
    """A count behind an update: it moves by what is new less what was."""
    return count + now - was


# --- sets ----------------------------------------------------------------------------------------


def counted(size: Term, inside: Term) -> Claims:
    """A set that counts 0 has no member.

    inside  whether some thing, any one, is in the set
    """
    return Claim(size >= 0), Claim(size >= 1, (inside,))


def inhabited(size: Term, inside: Term) -> Claims:
    """A set that counts more has one.

    inside  whether the witness is in the set
    """
    return (Claim(inside, (size >= 1,)),)


def parted(free: Term, held: Term, usable: Term) -> Claims:
    """Where each usable block is either free or held, free and held ones add up to the usable ones."""
    return (Claim(free + held == usable),)


# --- lists ---------------------------------------------------------------------------------------


def occurring(size: Term, count: Term, place: Term, there: Term) -> Claims:
    """What occurs in a list has a place.

    count  how often some element occurs
    place  where it does, if it does
    there  whether it stands there
    """
    occurs = (count >= 1,)
    return Claim(count >= 0), Claim(place >= 0, occurs), Claim(place < size, occurs), Claim(there, occurs)


def standing(size: Term, place: Term, count: Term, here: Term) -> Claims:
    """What stands at a place occurs; once, only there.

    count  how often the element at `place` occurs
    here   whether `place` is where it is said to be
    """
    inside = (place >= 0, place < size)
    return Claim(count >= 1, inside), Claim(here, (*inside, count <= 1))


def summed(size: Term, total: Term) -> Claims:
    """A sum of zeros and ones over a list lies between 0 and its length."""
    return Claim(total >= 0), Claim(total <= size)


def once(size: Term, distinct: Term, most: Term) -> Claims:
    """A list in which nothing occurs twice has as many members as it is long.

    distinct  how many members there are
    most      how often the witness occurs: a member that occurs twice, if there is one
    """
    return Claim(distinct >= 0), Claim(distinct <= size), Claim(distinct == size, (most <= 1,))


# --- totals --------------------------------------------------------------------------------------


def referred(references: Term, occurrences: Term) -> Claims:
    """Two totals that change by the same amount stay equal."""
    return (Claim(references == occurrences),)


def parts(total: Term, one: Term, two: Term) -> Claims:
    """A total of what is never negative is at least any two of its parts."""
    return (Claim(total >= one + two),)


LEMMAS: dict[str, tuple[Callable[..., Claims], ...]] = {
    "SET": (counted, inhabited),
    "PARTITION": (parted,),
    "MEMBERS": (occurring, standing),
    "TOTAL": (summed,),
    "ONCE": (once,),
    "REFERENCES": (referred,),
    "PARTS": (parts,),
}


def sentence(lemma: str) -> str:
    """What a lemma says: the first line of each of its functions."""
    lines = [(function.__doc__ or "").partition("\n")[0].rstrip(".") for function in LEMMAS[lemma]]
    return ". ".join(lines)
