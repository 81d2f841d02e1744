"""Containers of the scheduler's state as tracked maps: z3 arrays, each with the count that moves along with it.

A count moves by the update lemma, `count' = count + new - old`, and what a count says of its map is a lemma too:
a set that counts at least 1 has a member, a member of a list has a place, a place of a list holds a member.
`lemmas` proves each of them by induction; every concrete run checks them (`test_lemmas`).

Orders are not modelled: the front of the free queue is any free block, the oldest holder of a key any holder.
What holds for any choice holds for the order that the scheduler keeps.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import z3

from spec.proofs import paths
from spec.proofs.loops import Loop
from spec.proofs.value import Number, term

Term = Any


class Cells:
    """A list of numbers that only its cells change: the references of the blocks."""

    def __init__(self, name: str, length: Term) -> None:
        self.name = name
        self.size = length
        self.havoc()

    def havoc(self) -> None:
        self.values = paths.current().array(self.name)

    def length(self) -> Number:
        return Number(self.size)

    def __getitem__(self, index: Any) -> Number:
        at = term(index)
        paths.current().require(f"{self.name}: the index is inside", z3.And(at >= 0, at < self.size))
        paths.current().mention("block", at)
        return Number(self.values[at])

    def __setitem__(self, index: Any, value: Any) -> None:
        at = term(index)
        paths.current().require(f"{self.name}: the index is inside", z3.And(at >= 0, at < self.size))
        paths.current().mention("block", at)
        self.values = z3.Store(self.values, at, term(value))


class Queue:
    """A set of blocks that counts its members: the free queue."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.havoc()

    def havoc(self) -> None:
        path = paths.current()
        self.member = path.array(self.name, z3.BoolSort())
        self.size = path.integer(f"{self.name} count")
        member, size = self.member, self.size
        path.assume(size >= 0)
        path.for_all("block", lambda b: z3.Implies(member[b], size >= 1))

    def length(self) -> Number:
        return Number(self.size)

    def __contains__(self, block: Any) -> bool:
        paths.current().mention("block", term(block))
        return paths.current().choose(self.member[term(block)])

    def popitem(self, last: bool = True) -> tuple[Number, None]:
        """Any member: a queue that counts at least 1 has one."""
        path = paths.current()
        path.require(f"{self.name}: not empty when it is popped", self.size >= 1)
        block = path.integer("popped")
        path.assume(self.member[block])
        path.mention("block", block)
        self._remove(block)
        return Number(block), None

    def __delitem__(self, block: Any) -> None:
        path, at = paths.current(), term(block)
        path.mention("block", at)
        path.require(f"{self.name}: what leaves it is in it", self.member[at])
        self._remove(at)

    def __setitem__(self, block: Any, _: None) -> None:
        at = term(block)
        paths.current().mention("block", at)
        self.size = self.size + z3.If(self.member[at], 0, 1)
        self.member = z3.Store(self.member, at, True)

    def _remove(self, block: Term) -> None:
        self.member = z3.Store(self.member, block, False)
        self.size = self.size - 1


class Keys:
    """A dict from blocks to prefix keys."""

    def __init__(self) -> None:
        self.havoc()

    def havoc(self) -> None:
        path = paths.current()
        self.has = path.array("has key", z3.BoolSort())
        self.value = path.array("key of")
        self.size = path.integer("keys count")
        has, size = self.has, self.size
        path.assume(size >= 0)
        path.for_all("block", lambda b: z3.Implies(has[b], size >= 1))

    def length(self) -> Number:
        return Number(self.size)

    def __contains__(self, block: Any) -> bool:
        paths.current().mention("block", term(block))
        return paths.current().choose(self.has[term(block)])

    def __setitem__(self, block: Any, key: Any) -> None:
        path, at = paths.current(), term(block)
        path.mention("block", at)
        path.mention("key", term(key))
        self.size = self.size + z3.If(self.has[at], 0, 1)
        self.has = z3.Store(self.has, at, True)
        self.value = z3.Store(self.value, at, term(key))

    def pop(self, block: Any) -> Number:
        path, at = paths.current(), term(block)
        path.mention("block", at)
        path.require("key_of: the block that loses its key has one", self.has[at])
        self.has = z3.Store(self.has, at, False)
        self.size = self.size - 1
        path.mention("key", self.value[at])
        return Number(self.value[at])

    def clear(self) -> None:
        self.has = z3.K(z3.IntSort(), z3.BoolVal(False))
        self.size = z3.IntVal(0)


class Holders:
    """A dict from keys to the set of blocks that are hittable under each."""

    def __init__(self) -> None:
        self.havoc()

    def havoc(self) -> None:
        path = paths.current()
        self.present = path.array("present", z3.BoolSort())
        self.blocks = path.array("holders", z3.ArraySort(z3.IntSort(), z3.BoolSort()))
        self.count = path.array("holders count")

    def holds(self, key: Term, block: Term) -> Term:
        return z3.And(self.present[key], self.blocks[key][block])

    def __contains__(self, key: Any) -> bool:
        paths.current().mention("key", term(key))
        return paths.current().choose(self.present[term(key)])

    def __getitem__(self, key: Any) -> Holding:
        path = paths.current()
        path.mention("key", term(key))
        path.require("holders: the key is there", self.present[term(key)])
        return Holding(self, term(key))

    def __delitem__(self, key: Any) -> None:
        paths.current().require("holders: the key is there", self.present[term(key)])
        self.present = z3.Store(self.present, term(key), False)

    def setdefault(self, key: Any, default: dict[Any, Any]) -> Holding:
        assert default == {}
        at = term(key)
        paths.current().mention("key", at)
        nobody = z3.K(z3.IntSort(), z3.BoolVal(False))
        was = self.present[at]
        self.blocks = z3.Store(self.blocks, at, z3.If(was, self.blocks[at], nobody))
        self.count = z3.Store(self.count, at, z3.If(was, self.count[at], z3.IntVal(0)))
        self.present = z3.Store(self.present, at, True)
        return Holding(self, at)

    def clear(self) -> None:
        self.present = z3.K(z3.IntSort(), z3.BoolVal(False))


class Holding:
    """The blocks under one key: a set that counts its members."""

    def __init__(self, holders: Holders, key: Term) -> None:
        self.holders, self.key = holders, key

    def _lemma(self, block: Term) -> None:
        h = self.holders
        paths.current().mention("block", block)
        paths.current().assume(z3.Implies(h.blocks[self.key][block], h.count[self.key] >= 1))

    def __setitem__(self, block: Any, _: None) -> None:
        h, at = self.holders, term(block)
        self._lemma(at)
        h.count = z3.Store(h.count, self.key, h.count[self.key] + z3.If(h.blocks[self.key][at], 0, 1))
        h.blocks = z3.Store(h.blocks, self.key, z3.Store(h.blocks[self.key], at, True))

    def __delitem__(self, block: Any) -> None:
        h, at = self.holders, term(block)
        self._lemma(at)
        paths.current().require("holders: the block is under its key", h.blocks[self.key][at])
        h.count = z3.Store(h.count, self.key, h.count[self.key] - 1)
        h.blocks = z3.Store(h.blocks, self.key, z3.Store(h.blocks[self.key], at, False))

    def __bool__(self) -> bool:
        """Whether there are any; a set that counts 0 has no member."""
        h, path = self.holders, paths.current()
        blocks, count = h.blocks[self.key], h.count[self.key]
        path.for_all("block", lambda b: z3.Implies(blocks[b], count >= 1))
        return path.choose(count >= 1)

    def __iter__(self) -> Holding:
        return self

    def __next__(self) -> Number:
        h, path = self.holders, paths.current()
        path.require("holders: a key that is there has a holder", h.count[self.key] >= 1)
        block = path.integer("holder")
        path.assume(h.blocks[self.key][block])
        path.mention("block", block)
        path.mention("pair", (self.key, block))
        return Number(block)


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
        path.for_all(self.kind, lambda x: count[x] <= length[x])
        return made

    def append(self, value: Any) -> None:
        new = term(value)
        paths.current().mention(self.kind, new)
        self.at = z3.Store(self.at, self.size, new)
        self.count = z3.Store(self.count, new, self.count[new] + 1)
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
        path.for_all(self.kind, lambda x: new[x] == count[x] + others_count[x])
        path.for_all(self.kind, lambda x: place[x] == z3.If(others_count[x] >= 1, size + others_where[x], where[x]))
        self.size = size + others.size

    def pop(self) -> Number:
        last: Number = self[-1]
        self.size = self.size - 1
        self.count = z3.Store(self.count, last.term, self.count[last.term] - 1)
        self.where = z3.Store(self.where, last.term, paths.current().integer(f"another place in {self.name}"))
        assume_list(self)
        return last

    def total(self, element: Term, summand: Term) -> Term:
        """The sum of `summand`, which is about `element`, over all elements."""
        total = paths.current().integer(f"sum over {self.name}")
        paths.current().assume(total >= 0, total <= self.size)
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
        if folding.over is not None:
            raise StopIteration
        path = paths.current()
        folding.over, folding.element = self.of, path.integer("element")
        # It need not be inside: the sum is used at elements only.
        path.assume(self.of.count[folding.element] >= 1)
        path.mention(self.of.kind, folding.element)
        return Number(folding.element)


def assume_list(blocks: Blocks) -> None:
    """What a list's occurrences and places say of each other (`lemmas.MEMBERS`)."""
    path = paths.current()
    size, at, count, where = blocks.size, blocks.at, blocks.count, blocks.where
    path.for_all(
        blocks.kind,
        lambda x: z3.And(
            count[x] >= 0,
            z3.Implies(count[x] >= 1, z3.And(where[x] >= 0, where[x] < size, at[where[x]] == x)),
        ),
    )
    path.for_all(
        "place",
        lambda i: z3.Implies(
            z3.And(i >= 0, i < size), z3.And(count[at[i]] >= 1, z3.Implies(count[at[i]] <= 1, where[at[i]] == i))
        ),
    )


class Tokens:
    """A list of tokens, of which only the length and which tokens an index range covers matter.

    `word` is the name of the tokens at `start .. stop` of this request.
    """

    copy_symbolic = True

    def __init__(self, size: Term, word: Any = None) -> None:
        self.size, self.word = size, word
        self.part: tuple[Term, Term] | None = None

    def length(self) -> Number:
        return Number(self.size)

    def __bool__(self) -> bool:
        return paths.current().choose(self.size > 0)

    def copy(self) -> Tokens:
        made = Tokens(self.size, self.word)
        made.part = self.part
        return made

    def append(self, _: Any) -> None:
        self.size = self.size + 1

    def __getitem__(self, part: slice) -> Tokens:
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
        member, size = self.member, self.size
        path.assume(size >= 0)
        path.for_all("member", lambda x: z3.Implies(member[x], size >= 1))

    def length(self) -> Number:
        return Number(self.size)

    def __contains__(self, value: Any) -> bool:
        return paths.current().choose(self.member[term(value)])

    def __repr__(self) -> str:
        return f"{{{self.name}}}"

    def add(self, value: Any) -> None:
        new = term(value)
        self.size = self.size + z3.If(self.member[new], 0, 1)
        self.member = z3.Store(self.member, new, True)
