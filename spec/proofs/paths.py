"""Every path of an action: forks by re-execution.

An action runs as ordinary Python.  Where it tests a symbolic truth value the path asks the solver which sides are
feasible; if both are, it takes one and notes the other, and the action is run again from the start for it.  When no
side is left every path was seen, and what holds at the end of each holds for the action.

Invariants are not quantified formulas: a fact about every block (or key, or position) is kept as a function and
instantiated at each term of that kind that the action or a goal mentions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import z3

RLIMIT = 6_000_000
"""Solver resources for one question; a question that needs more is `unknown`, and that is a failure."""
PROBES = (1, 2, 4)
"""Block sizes at which a counterexample is sought when the symbolic question was too hard to refute."""
LONGEST = 400
"""Decisions on one path; a longer one is an endless loop."""

z3.z3.Z3_DEBUG = False  # the bindings' own checks of their arguments: a third of the time

Term = Any
Fact = Callable[[Term], Term]


class Cut(Exception):
    """The path ends here: what follows is proved on another path (loop rule, contract)."""


class Infeasible(Exception):
    """No input leads here."""


class Endless(Exception):
    """The action does not come to an end on this path."""


@dataclass
class Check:
    """One question that was put to the solver: did `name` hold on this path?"""

    name: str
    verdict: str
    cost: int
    model: Any = None
    values: dict[str, tuple[str, str]] = field(default_factory=dict)
    """For a counterexample: each number of the state, before and after."""

    @property
    def proved(self) -> bool:
        return self.verdict == "proved"


class Path:
    """One way through an action: its decisions, what is assumed, what was checked."""

    def __init__(self) -> None:
        self.solver = z3.Solver()
        self.solver.set("random_seed", 0)
        self.solver.set("rlimit", RLIMIT)
        self.prefix: list[bool] = []
        self.decisions: list[bool] = []
        self.pending: list[list[bool]] = []
        self.checks: list[Check] = []
        self.block_size: Term = None
        self.world: Any = None
        self.small: list[Term] = []
        """What makes a counterexample easy to read, where one like that exists."""
        self._assumed: list[Term] = []
        self._decided: dict[int, tuple[bool, Term]] = {}
        self._names: Counter[str] = Counter()
        self._facts: dict[str, list[Fact]] = {}
        self._seen: dict[str, dict[Any, Term]] = {}

    def follow(self, prefix: list[bool]) -> Path:
        """A path that begins with all that was said on this one, then takes the decisions of `prefix`."""
        if self.decisions or self.checks:
            raise ValueError("only a beginning without decisions can be shared")
        path = Path()
        path.prefix, path.block_size, path.small = prefix, self.block_size, self.small
        path._names = Counter(self._names)
        path._facts = {kind: list(facts) for kind, facts in self._facts.items()}
        path._seen = {kind: dict(seen) for kind, seen in self._seen.items()}
        if len(self._assumed) > 1:
            self._assumed = [z3.And(*self._assumed)]
        path.assume(*self._assumed)
        return path

    # --- symbols and facts ---------------------------------------------------------------------

    def name(self, stem: str) -> str:
        self._names[stem] += 1
        count = self._names[stem]
        return stem if count == 1 else f"{stem}.{count}"

    def integer(self, stem: str) -> Term:
        return z3.Int(self.name(stem))

    def truth(self, stem: str) -> Term:
        return z3.Bool(self.name(stem))

    def array(self, stem: str, of: Any = None) -> Term:
        return z3.Array(self.name(stem), z3.IntSort(), z3.IntSort() if of is None else of)

    def assume(self, *terms: Term) -> None:
        for each in terms:
            self._assumed.append(each)
            self.solver.add(each)

    def for_all(self, kind: str, fact: Fact) -> None:
        """Assumes a fact about everything of a kind: at what was mentioned so far, and at what will be."""
        self._facts.setdefault(kind, []).append(fact)
        for seen in list(self._seen.get(kind, {}).values()):
            self.assume(fact(seen))

    def mention(self, kind: str, term: Term) -> None:
        """Something of a kind turns up: instantiates the facts of the kind at it."""
        seen = self._seen.setdefault(kind, {})
        name = tuple(each.get_id() for each in term) if isinstance(term, tuple) else term.get_id()
        if name not in seen:
            seen[name] = term
            for fact in list(self._facts.get(kind, ())):
                self.assume(fact(term))

    # --- decisions -----------------------------------------------------------------------------

    @property
    def replaying(self) -> bool:
        """Whether an earlier path came the same way, so that what is required here was checked by it."""
        return len(self.decisions) < len(self.prefix)

    def choose(self, term: Term) -> bool:
        term = z3.simplify(term)
        if z3.is_true(term) or z3.is_false(term):
            return bool(z3.is_true(term))
        if (decided := self._decided.get(term.get_id())) is not None:
            return decided[0]
        if len(self.decisions) >= LONGEST:
            raise Endless
        if self.replaying:
            value = self.prefix[len(self.decisions)]
        else:
            can, cannot = self._feasible(term), self._feasible(z3.Not(term))
            if not can and not cannot:
                raise Infeasible
            if can and cannot:
                self.pending.append([*self.decisions, False])
            value = can
        self.decisions.append(value)
        self._decided[term.get_id()] = value, term
        self.assume(term if value else z3.Not(term))
        return value

    def _feasible(self, term: Term) -> bool:
        return bool(self.solver.check(term) != z3.unsat)

    # --- questions -----------------------------------------------------------------------------

    def require(self, name: str, term: Term) -> None:
        """What must hold here whatever follows, such as that a queue is not empty when it is popped."""
        if not self.replaying:
            self.check(name, term)
        self.assume(term)

    def check(self, name: str, term: Term) -> Check:
        if z3.is_true(z3.simplify(term)):
            self.checks.append(found := Check(name, "proved", 0))
            return found
        before = self._cost()
        answer, model = self._ask(z3.Not(term))
        verdict = "proved" if answer == z3.unsat else "refuted" if answer == z3.sat else "unknown"
        found = Check(name, verdict, self._cost() - before, model)
        self.checks.append(found)
        return found

    def possible(self, *terms: Term) -> bool:
        """Whether some input takes the path (with `terms`); if none does it is vacuous."""
        return bool(self._answer(*terms) == z3.sat)

    def _answer(self, *terms: Term) -> Any:
        answer = self.solver.check(*terms)
        if answer == z3.unknown and self.block_size is not None:
            for size in PROBES:
                if self.solver.check(*terms, self.block_size == size) == z3.sat:
                    return z3.sat
        return answer

    def _ask(self, *terms: Term) -> tuple[Any, Any]:
        answer = self._answer(*terms)
        if answer != z3.sat:
            return answer, None
        model = self.solver.model()
        if self.small and self.solver.check(*terms, *self.small) == z3.sat:
            model = self.solver.model()
        return answer, model

    def _cost(self) -> int:
        statistics = self.solver.statistics()
        for at in reversed(range(len(statistics))):  # it stands at the end
            name, value = statistics[at]
            if name == "rlimit count":
                return int(value)
        return 0


_current: list[Path] = []


def current() -> Path:
    """The path that is being run."""
    return _current[-1]


@contextmanager
def running(path: Path) -> Iterator[Path]:
    """Makes it the current path."""
    _current.append(path)
    try:
        yield path
    finally:
        _current.pop()


def explore(start: Path, run: Callable[[Path], None]) -> Iterator[Path]:
    """Runs `run` once for each path that begins like `start`; `run` may raise Cut or Infeasible."""
    pending: list[list[bool]] = [[]]
    while pending:
        with running(start.follow(pending.pop())) as path, suppress(Cut, Infeasible):
            run(path)
        pending += path.pending
        yield path
