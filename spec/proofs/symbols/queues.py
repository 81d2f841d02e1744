"""Queues of requests, of any length: who stands where, told of a few, the rest only counted.

Places are told of `own`, of `other`, and of one bystander in each queue, who stands for anybody else.  So what is
proved of the order of these holds for the order of all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.symbols.loops import Loop, Walk
from spec.proofs.symbols.value import Number, term

Term = Any
World = Any


class Bystander:
    """Anybody else in a queue, if there is somebody."""

    def __init__(self, name: str) -> None:
        self.name = name


class Line:
    """One queue.

    places   of those who are looked at, from the front
    there    whether they are there at all
    joined   who came in this action, and at which end
    """

    copy_symbolic = True

    def __init__(self, world: World, name: str, present: dict[Any, Term]) -> None:
        self.world, self.name = world, name
        self.joined: list[tuple[str, Any]] = []
        self.there = dict(present)
        self.places: dict[Any, Term] = {}
        self.havoc()

    @classmethod
    def empty(cls, world: World, name: str) -> Line:
        made = cls(world, name, {})
        made.clear()
        return made

    def havoc(self, keep: Any = None) -> None:
        """Any length, anybody at any place, but for `keep`, who stands where it stood."""
        path, kept = self.world.path, self.places.get(keep)
        self.size = path.integer(self.name)
        self.there = dict(self.told())
        self.there[Bystander(self.name)] = path.truth(f"a bystander in {self.name}")
        self.places = {live: path.integer(f"place of {name_of(live)}") for live in self.there}
        if kept is not None:
            self.places[keep] = kept
        path.assume(self.size >= 0, z3.Distinct(*self.places.values(), z3.IntVal(-1)))
        path.assume(*(z3.Implies(there, self.inside(self.places[live])) for live, there in self.there.items()))

    def __iter__(self) -> Walk:
        return Walk(self, Loop(sys._getframe(1), z3.IntVal(0), self.size))

    def told(self) -> list[tuple[Any, Term]]:
        """Those of whom more is told than the place, and whether they are there."""
        return [(live, there) for live, there in self.there.items() if not isinstance(live, Bystander)]

    def inside(self, place: Term) -> Term:
        return z3.And(place >= 0, place < self.size)

    def others(self) -> Term:
        """How many are in the queue beside `own` and `other`."""
        return self.size - z3.Sum([z3.IntVal(0), *(z3.If(there, 1, 0) for _, there in self.told())])

    @property
    def present(self) -> list[Any]:
        return [live for live in self.places if not isinstance(live, Bystander)]

    def length(self) -> Number:
        return Number(self.size)

    def __bool__(self) -> bool:
        return bool(self.world.path.choose(self.size > 0))

    def __getitem__(self, index: Any) -> Any:
        at = term(index)
        self.world.path.require(f"{self.name}: the index is inside", z3.And(at >= 0, at < self.size))
        return self._at(at)

    def _at(self, place: Term) -> Any:
        """Who stands at a place: own, or somebody else, who is then called `other`."""
        own, other = self.world.own, self.world.other
        if other in self.places and not (own in self.places and self.world.path.choose(self.places[own] == place)):
            self.world.path.assume(self.there[other], self.places[other] == place)
            return other
        self.world.path.assume(self.places[own] == place)
        return own

    def pop(self) -> Any:
        self.world.path.require(f"{self.name}: not empty when it is popped", self.size >= 1)
        self.world.victim_place = self.size - 1
        popped = self._at(self.size - 1)
        self._leave(popped)
        return popped

    def popleft(self) -> Any:
        self.world.path.require(f"{self.name}: not empty when it is popped", self.size >= 1)
        popped = self._at(z3.IntVal(0))
        self._leave(popped)
        return popped

    def remove(self, live: Any) -> None:
        self.world.path.require(f"{self.name}: who leaves it is in it", z3.BoolVal(live in self.places))
        self._leave(live)

    def _leave(self, live: Any) -> None:
        left = self.places[live]
        self.forget(live)
        self.places = {each: z3.If(at > left, at - 1, at) for each, at in self.places.items()}
        self.size = self.size - 1

    def copy(self) -> Line:
        return self

    def forget(self, live: Any) -> None:
        """It is not looked at any more."""
        self.places.pop(live, None)
        self.there.pop(live, None)

    def clear(self) -> None:
        self.places, self.there, self.size = {}, {}, z3.IntVal(0)

    def append(self, live: Any) -> None:
        self.joined.append(("back", live))
        self.there[live] = z3.BoolVal(True)
        self.places[live] = self.size
        self.size = self.size + 1

    def appendleft(self, live: Any) -> None:
        self.joined.append(("front", live))
        self._shift(z3.IntVal(1))
        self.there[live] = z3.BoolVal(True)
        self.places[live] = z3.IntVal(0)

    def extendleft(self, others: Line | Backwards) -> None:
        """One after the other to the front, so the last one comes to stand first."""
        if isinstance(others, Backwards):
            came, places = others.of, dict(others.of.places)
        else:
            came = others
            places = {each: others.size - 1 - at for each, at in others.places.items()}
        self._shift(came.size)
        self.places |= places
        self.there |= came.there

    def _shift(self, by: Term) -> None:
        self.places = {each: at + by for each, at in self.places.items()}
        self.size = self.size + by

    def reversed(self) -> Backwards:
        return Backwards(self)


class Backwards:
    """A queue, last one first."""

    def __init__(self, of: Line) -> None:
        self.of = of


def sequence(world: World) -> dict[Any, tuple[Term, Term]]:
    """The place of everybody who is looked at in `running ++ set aside ++ waiting`, and whether there is one."""
    found: dict[Any, tuple[Term, Term]] = {}
    ahead = z3.IntVal(0)
    for line in (world.state.running, world.step.skipped, world.state.waiting):
        for each, place in line.places.items():
            found[each] = ahead + place, line.there[each]
        ahead = ahead + line.size
    return found


def moved(world: World, by: Callable[[Any, Term], Term]) -> dict[str, Term]:
    """ORDER: who was and is in a queue has moved by `by(who, place before)` in the sequence; no bystander leaves."""
    now = sequence(world)
    return {
        f"ORDER: {name_of(who)} keeps its place": z3.Implies(
            there, now[who][0] == before + by(who, before) if who in now else z3.BoolVal(False)
        )
        for who, (before, there) in world.sequence.items()
        if who in now or isinstance(who, Bystander)
    }


def keeps_order(world: World) -> dict[str, Term]:
    """ORDER: nobody has moved in the sequence."""
    return moved(world, lambda who, place: z3.IntVal(0))


def name_of(who: Any) -> str:
    return f"bystander in {who.name}" if isinstance(who, Bystander) else str(who.request.request_id)
