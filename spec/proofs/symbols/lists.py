"""Lists of symbolic length: tables, keys, tokens; the sums over them; and sets of which only the members matter.

See `maps` for what a count says of its container.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import z3

from spec.counting import counted, moved, occurring, once, parts, referred, standing, summed
from spec.proofs.symbols import paths
from spec.proofs.symbols.logic import formula, one
from spec.proofs.symbols.loops import Loop, Walk
from spec.proofs.symbols.value import Number, term

Term = Any


class Folding:
    """While this is open, walking over a list yields one element that stands for all of them."""

    active: ClassVar[list[Folding]] = []

    def __init__(self) -> None:
        self.over: Blocks | None = None
        self.element: Term = None

    def __enter__(self) -> Folding:
        self.active.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.active.pop()


class Rounds:
    """`range` of symbolic bounds."""

    def __init__(self, start: Term, stop: Term) -> None:
        self.start, self.stop = start, stop

    def __iter__(self) -> Loop:
        return Loop(sys._getframe(1), self.start, self.stop)


class Blocks:
    """A list of blocks or keys: its length, its elements, how often each occurs, and a place for each that does.

    totals: sums over the elements that were asked for, as (summand of an element, sum).
    """

    copy_symbolic = True

    def __init__(self, name: str, kind: str, size: Term, at: Term, count: Term, where: Term) -> None:
        self.name, self.kind = name, kind
        self.size, self.at, self.count, self.where = size, at, count, where
        self.totals: list[tuple[Any, Term]] = []

    @classmethod
    def fresh(cls, name: str, kind: str = "block") -> Blocks:
        made = cls(name, kind, None, None, None, None)
        made.havoc()
        return made

    @classmethod
    def empty(cls, name: str, kind: str = "block") -> Blocks:
        path = paths.current()
        return cls(name, kind, z3.IntVal(0), path.array(name), z3.K(z3.IntSort(), z3.IntVal(0)), path.array(name))

    def havoc(self) -> None:
        path = paths.current()
        self.size = path.integer(f"{self.name} length")
        self.at = path.array(self.name)
        self.count = path.array(f"{self.name} occurrences")
        self.where = path.array(f"{self.name} place")
        path.assume(self.size >= 0)
        self.totals = []
        assume_list(self)

    def copy(self) -> Blocks:
        made = Blocks(self.name, self.kind, self.size, self.at, self.count, self.where)
        made.totals = list(self.totals)
        return made

    def length(self) -> Number:
        return Number(self.size)

    def __bool__(self) -> bool:
        return paths.current().choose(self.size > 0)

    def __getitem__(self, index: Any) -> Any:
        path = paths.current()
        if isinstance(index, slice):
            return self._slice(index)
        at = term(index)
        if isinstance(index, int) and index < 0:
            at = self.size + at
        path.require(f"{self.name}: the index is inside", z3.And(at >= 0, at < self.size))
        path.mention("place", at)
        path.mention(self.kind, self.at[at])
        return Number(self.at[at])

    def _slice(self, part: slice) -> Blocks:
        """A leading or a trailing part."""
        path = paths.current()
        start = term(0 if part.start is None else part.start)
        stop = self.size if part.stop is None else term(part.stop)
        path.require(f"{self.name}: the slice is inside", z3.And(start >= 0, start <= stop, stop <= self.size))
        made = Blocks.fresh(f"part of {self.name}", self.kind)
        whole, at, count, length = self.at, made.at, made.count, self.count
        path.assume(made.size == stop - start)
        path.for_all("place", lambda i: z3.Implies(z3.And(i >= 0, i < stop - start), at[i] == whole[start + i]))
        path.for_all(self.kind, lambda x: formula(parts(length[x], count[x], z3.IntVal(0))))
        return made

    def append(self, value: Any) -> None:
        new = term(value)
        paths.current().mention(self.kind, new)
        self.at = z3.Store(self.at, self.size, new)
        self.count = z3.Store(self.count, new, moved(self.count[new], 0, 1))
        self.where = z3.Store(self.where, new, self.size)
        self.size = self.size + 1

    def extend(self, others: Blocks) -> None:
        path, size = paths.current(), self.size
        before, count, others_at, others_count = self.at, self.count, others.at, others.count
        where, others_where = self.where, others.where
        self.at = at = path.array(self.name)
        self.count = new = path.array(f"{self.name} occurrences")
        self.where = place = path.array(f"{self.name} place")
        path.for_all("place", lambda i: at[i] == z3.If(i < size, before[i], others_at[i - size]))
        path.for_all(self.kind, lambda x: formula(referred(new[x], count[x] + others_count[x])))
        path.for_all(self.kind, lambda x: place[x] == z3.If(others_count[x] >= 1, size + others_where[x], where[x]))
        self.size = size + others.size

    def pop(self) -> Number:
        last: Number = self[-1]
        self.size = self.size - 1
        self.count = z3.Store(self.count, last.term, moved(self.count[last.term], 1, 0))
        self.where = z3.Store(self.where, last.term, paths.current().integer(f"another place in {self.name}"))
        assume_list(self)
        return last

    def total(self, element: Term, summand: Term) -> Term:
        """The sum of `summand`, which is about `element`, over all elements."""
        total = paths.current().integer(f"sum over {self.name}")
        paths.current().assume(formula(summed(self.size, total)))
        self.totals.append((lambda x: z3.substitute(summand, (element, x)), total))
        return total

    def reversed(self) -> Reversed:
        return Reversed(self)

    def __iter__(self) -> Loop | Element:
        return self.walk(sys._getframe(1), backwards=False)

    def walk(self, frame: Any, backwards: bool) -> Loop | Element:
        if Folding.active or frame.f_code.co_name in ("evictable",):
            return Element(self)
        return Loop(frame, z3.IntVal(0), self.size, self, backwards)


class Reversed:
    """A list, last element first."""

    def __init__(self, of: Blocks) -> None:
        self.of = of

    def __iter__(self) -> Loop | Element:
        return self.of.walk(sys._getframe(1), backwards=True)


class Element:
    """The one element that stands for all in a sum."""

    def __init__(self, of: Blocks) -> None:
        self.of = of

    def __iter__(self) -> Element:
        return self

    def __next__(self) -> Number:
        folding = Folding.active[-1]
        if folding.over is not None or not self.of:
            raise StopIteration
        path = paths.current()
        folding.over, folding.element = self.of, path.integer("element")
        path.assume(self.of.count[folding.element] >= 1)
        path.mention(self.of.kind, folding.element)
        return Number(folding.element)


def assume_list(blocks: Blocks) -> None:
    """What a list's occurrences and places say of each other (lemma MEMBERS)."""
    path = paths.current()
    size, at, count, where = blocks.size, blocks.at, blocks.count, blocks.where
    path.for_all(blocks.kind, lambda x: formula(occurring(size, count[x], where[x], at[where[x]] == x)))
    path.for_all("place", lambda i: formula(standing(size, i, count[at[i]], where[at[i]] == i)))


def distinct(blocks: Blocks) -> Term:
    """How many members a list has; as many as it is long, unless something occurs twice (lemma ONCE)."""
    path = paths.current()
    members, witness = path.integer(f"members of {blocks.name}"), path.integer(f"twice in {blocks.name}")
    path.mention(blocks.kind, witness)
    path.assume(formula(once(blocks.size, members, blocks.count[witness])))
    return members


class Tokens:
    """A list of tokens, of which only the length and which tokens an index range covers matter.

    word   the request whose tokens these are, at `part` of it
    last   what was appended last
    """

    copy_symbolic = True

    def __init__(self, size: Term, word: Any = None) -> None:
        self.size, self.word = size, word
        self.part: tuple[Term, Term] | None = None
        self.last: Any = None

    def length(self) -> Number:
        return Number(self.size)

    def __bool__(self) -> bool:
        return paths.current().choose(self.size > 0)

    def copy(self) -> Tokens:
        made = Tokens(self.size, self.word)
        made.part = self.part
        return made

    def append(self, value: Any) -> None:
        self.last = value
        self.size = self.size + 1

    def __iter__(self) -> Walk:
        return Walk(self, Loop(sys._getframe(1), z3.IntVal(0), self.size))

    def __getitem__(self, part: Any) -> Any:
        """A part; or the token at one place, which may be any."""
        if not isinstance(part, slice):
            return Number(paths.current().integer("token"))
        start = term(0 if part.start is None else part.start)
        stop = self.size if part.stop is None else term(part.stop)
        inside = z3.And(start >= 0, start <= stop, stop <= self.size)
        paths.current().require("tokens: the slice is inside", inside)
        made = Tokens(stop - start, self.word)
        made.part = (start, stop)
        return made


class Members:
    """A set of which only membership and the number of members matter: adapters, stop tokens."""

    def __init__(self, name: str) -> None:
        path = paths.current()
        self.name = name
        self.member = path.array(name, z3.BoolSort())
        self.size = path.integer(f"{name} count")
        self._lemma(z3.BoolVal(False))

    def length(self) -> Number:
        return Number(self.size)

    def _lemma(self, inside: Term) -> None:
        paths.current().assume(formula(counted(self.size, inside)))

    def __contains__(self, value: Any) -> bool:
        self._lemma(self.member[term(value)])
        return paths.current().choose(self.member[term(value)])

    def __repr__(self) -> str:
        return f"{{{self.name}}}"

    def add(self, value: Any) -> None:
        new = term(value)
        self._lemma(self.member[new])
        self.size = moved(self.size, one(self.member[new]), 1)
        self.member = z3.Store(self.member, new, True)
