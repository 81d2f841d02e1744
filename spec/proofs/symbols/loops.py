"""Loops of symbolic length, by the rule of Hoare: the invariant holds on entry, and each round keeps it.

A `for` over a symbolic range or list asks for the invariant of the loop (`loop_invariants.LOOPS`), by the name of the
function that it stands in.  It checks it on entry, then forgets everything that the loop changes and goes two ways:
one arbitrary round, at whose end the invariant is checked again and the path is cut; and the code behind the loop.
A `while` does the same before each test (`another_round`); it must come to an end, so its rank falls in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import z3

from spec.proofs.symbols import paths
from spec.proofs.symbols.value import Number

Term = Any
Facts = dict[str, dict[str, Callable[[Any], Term]]]


def at_anything(world: Any, plain: dict[str, Term], each: Facts) -> dict[str, Term]:
    """What is said of numbers, and of anything of each kind, as goals."""
    return plain | {name: fact(world.any[kind]) for kind, facts in each.items() for name, fact in facts.items()}


@dataclass
class Invariant:
    """What a loop changes, and what holds before each round.

    changes   containers to forget, and setters for single values, by name
    plain     name -> what holds
    each      kind -> name -> what holds of everything of the kind; a call if it is about who is `other` then
    rank      for a `while`: what is never negative and falls in each round
    lemmas    assumes what follows from the rest
    """

    changes: list[Any]
    resets: Mapping[str, Callable[[], object]] = field(default_factory=dict)
    plain: Callable[[], dict[str, Term]] = dict
    each: Facts | Callable[[], Facts] = field(default_factory=dict)
    rank: Callable[[], Term] | None = None
    lemmas: Callable[[], None] = lambda: None

    def facts(self) -> Facts:
        return self.each() if callable(self.each) else self.each

    def forget(self) -> None:
        """Nothing is known any more of what the loop changes."""
        for container in self.changes:
            container.havoc()
        for reset in self.resets.values():
            reset()

    def assume(self) -> None:
        path = paths.current()
        path.assume(*self.plain().values())
        for kind, facts in self.facts().items():
            for fact in facts.values():
                path.for_all(kind, frozen(fact, kind))
        self.lemmas()

    def suppose(self) -> None:
        """Forgets what may have changed, and assumes what then holds."""
        self.forget()
        self.assume()

    def goals(self) -> dict[str, Term]:
        return at_anything(paths.current().world, self.plain(), self.facts())

    def check(self, where: str) -> None:
        path = paths.current()
        if not path.replaying:
            path.check_all({f"{where}: {name}": goal for name, goal in self.goals().items()})

    def check_frame(self, where: str, before: dict[str, Term]) -> None:
        """What the loop was not said to change is the same object as before."""
        path = paths.current()
        if path.replaying:
            return
        changed = path.world.names_of(self)
        now, kept = path.world.cells(), before.keys() - changed
        moved = sorted(name for name in kept if name not in now or not z3.eq(now[name], before[name]))
        stays = {name: now[name] == before[name] if name in now else z3.BoolVal(False) for name in moved}
        path.check_all({f"{where}: {name} stays": term for name, term in stays.items()})


class Loop:
    """One loop, being run.

    index   the round, from start
    rest    for a loop over a list: how often each element still comes
    sums    for a loop over a list: its totals, over what still comes
    """

    def __init__(self, frame: Any, start: Term, stop: Term, over: Any = None, backwards: bool = False) -> None:
        self.frame, self.start, self.over, self.backwards = frame, start, over, backwards
        self.stop = z3.If(stop >= start, stop, start)
        self.phase = 0
        self.before: dict[str, Term] = {}
        self.index = start
        self.rest: Any = None if over is None else over.count
        self.at: Any = None if over is None else over.at
        self.sums = [] if over is None else [total for _, total in over.totals]

    def __iter__(self) -> Loop:
        return self

    @property
    def name(self) -> str:
        return str(self.frame.f_code.co_name)

    def __next__(self) -> Any:
        path = paths.current()
        if self.phase == 1:
            self.invariant.check(f"loop of {self.name}, each round keeps")
            self.invariant.check_frame(f"loop of {self.name}, each round", self.before)
            raise paths.Cut
        self.invariant: Invariant = path.world.invariant_of(self)
        self.invariant.check(f"loop of {self.name}, on entry")
        if not path.choose(z3.And(path.truth("another round"), self.start < self.stop)):
            self._forget(self.stop)
            if self.over is not None:
                rest = self.rest
                path.for_all(self.over.kind, lambda x: rest[x] == 0)
                path.assume(*(total == 0 for total in self.sums))
            self.invariant.assume()
            raise StopIteration
        self.phase = 1
        self._forget(path.integer("round"))
        path.assume(self.start <= self.index, self.index < self.stop)
        element = self.index if self.over is None else self._element()
        self.invariant.assume()
        self.before = path.world.cells()
        self._advance(element)
        return Number(element)

    def _element(self) -> Term:
        path, over = paths.current(), self.over
        place = over.size - 1 - self.index if self.backwards else self.index
        element = self.at[place]
        path.mention("place", place)
        path.mention(over.kind, element)
        path.assume(self.rest[element] >= 1)
        return element

    def _advance(self, element: Term) -> None:
        self.index = self.index + 1
        if self.over is not None:
            self.rest = z3.Store(self.rest, element, self.rest[element] - 1)
            self.sums = [s - f(element) for (f, _), s in zip(self.over.totals, self.sums, strict=True)]

    def _forget(self, index: Term) -> None:
        path = paths.current()
        self.invariant.forget()
        self.index = index
        if self.over is not None:
            whole = self.over.count
            self.rest = rest = path.array("still to come")
            path.for_all(self.over.kind, lambda x: z3.And(rest[x] >= 0, rest[x] <= whole[x]))
            self.sums = [path.integer("sum to come") for _ in self.sums]


class Walk:
    """A loop over something else that has a length and places: a queue, grants, tokens."""

    def __init__(self, over: Any, loop: Loop) -> None:
        self.over, self.loop = over, loop

    def __iter__(self) -> Walk:
        return self

    def __next__(self) -> Any:
        return self.over[next(self.loop)]


def another_round(function: str, number: int) -> bool:
    """Stands before the test of the `number`-th `while` of a function; always true, or the path is cut."""
    path = paths.current()
    world, where = path.world, f"loop {number + 1} of {function}"
    if (function, number) not in world.repeating:
        invariant: Invariant = world.invariant_of_while(function, number)
        assert invariant.rank is not None
        invariant.check(f"{where}, on entry")
        invariant.forget()
        invariant.assume()
        world.repeating[function, number] = invariant, invariant.rank(), world.cells()
        return True
    invariant, rank, before = world.repeating[function, number]
    assert invariant.rank is not None
    invariant.check(f"{where}, each round keeps")
    invariant.check_frame(f"{where}, each round", before)
    if not path.replaying:
        path.check(f"{where}: PROGRESS: comes to an end", z3.And(invariant.rank() >= 0, invariant.rank() < rank))
    raise paths.Cut


def frozen(fact: Callable[[Any], Term], kind: str = "block") -> Callable[[Any], Term]:
    """A fact is about the state in which it was assumed: it is worked out once, on variables, then substituted."""
    if kind == "pair":
        one, two = z3.Ints("fact-key fact-block")
        formula = fact((one, two))
        return lambda at: z3.substitute(formula, (one, at[0]), (two, at[1]))
    variable = z3.Int("fact-variable")
    formula = fact(variable)
    return lambda at: z3.substitute(formula, (variable, at))
