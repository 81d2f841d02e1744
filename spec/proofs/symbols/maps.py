"""Containers of the scheduler's state as tracked maps: z3 arrays, each with the count that moves along with it.

How a count moves and what it says of its map are the counting lemmas (`spec.counting`): `lemmas` proves them by
induction, `spec.recount` checks them on every run.

Orders are not modelled: the front of the free queue is any free block, the oldest holder of a key any holder.
What holds for any choice holds for the order that the scheduler keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.counting import counted, inhabited, moved, parted
from spec.proofs.symbols import paths
from spec.proofs.symbols.logic import formula, one
from spec.proofs.symbols.value import Number, term

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
        path.for_all("block", lambda b: formula(counted(size, member[b])))

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
        path.assume(formula(inhabited(self.size, self.member[block])))
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
        self.size = moved(self.size, one(self.member[at]), 1)
        self.member = z3.Store(self.member, at, True)

    def _remove(self, block: Term) -> None:
        self.member = z3.Store(self.member, block, False)
        self.size = moved(self.size, 1, 0)


def rest(free: Queue, usable: Term, held: Callable[[Term], Term]) -> Term:
    """How many usable blocks are held, where each is either free or `held` (lemmas PARTITION and SET)."""
    path = paths.current()
    number, witness = path.integer("blocks held"), path.integer("a block held")
    path.mention("block", witness)
    path.assume(formula(parted(free.size, number, usable)), formula(inhabited(number, held(witness))))
    path.for_all("block", lambda b: formula(counted(number, held(b))))
    return number


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
        path.for_all("block", lambda b: formula(counted(size, has[b])))

    def length(self) -> Number:
        return Number(self.size)

    def __contains__(self, block: Any) -> bool:
        paths.current().mention("block", term(block))
        return paths.current().choose(self.has[term(block)])

    def __setitem__(self, block: Any, key: Any) -> None:
        path, at = paths.current(), term(block)
        path.mention("block", at)
        path.mention("key", term(key))
        self.size = moved(self.size, one(self.has[at]), 1)
        self.has = z3.Store(self.has, at, True)
        self.value = z3.Store(self.value, at, term(key))

    def pop(self, block: Any) -> Number:
        path, at = paths.current(), term(block)
        path.mention("block", at)
        path.require("key_of: the block that loses its key has one", self.has[at])
        self.has = z3.Store(self.has, at, False)
        self.size = moved(self.size, 1, 0)
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
        paths.current().assume(formula(counted(h.count[self.key], h.blocks[self.key][block])))

    def __setitem__(self, block: Any, _: None) -> None:
        h, at = self.holders, term(block)
        self._lemma(at)
        h.count = z3.Store(h.count, self.key, moved(h.count[self.key], one(h.blocks[self.key][at]), 1))
        h.blocks = z3.Store(h.blocks, self.key, z3.Store(h.blocks[self.key], at, True))

    def __delitem__(self, block: Any) -> None:
        h, at = self.holders, term(block)
        self._lemma(at)
        paths.current().require("holders: the block is under its key", h.blocks[self.key][at])
        h.count = z3.Store(h.count, self.key, moved(h.count[self.key], 1, 0))
        h.blocks = z3.Store(h.blocks, self.key, z3.Store(h.blocks[self.key], at, False))

    def __bool__(self) -> bool:
        """Whether there are any; a set that counts 0 has no member."""
        h, path = self.holders, paths.current()
        blocks, count = h.blocks[self.key], h.count[self.key]
        path.for_all("block", lambda b: formula(counted(count, blocks[b])))
        return path.choose(count >= 1)

    def __iter__(self) -> Holding:
        return self

    def __next__(self) -> Number:
        h, path = self.holders, paths.current()
        path.require("holders: a key that is there has a holder", h.count[self.key] >= 1)
        block = path.integer("holder")
        path.assume(formula(inhabited(h.count[self.key], h.blocks[self.key][block])))
        path.mention("block", block)
        path.mention("pair", (self.key, block))
        return Number(block)
