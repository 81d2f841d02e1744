"""Every path of an action: forks by re-execution.

An action runs as ordinary Python.  Where it tests a symbolic truth value the path asks the solver which sides are
feasible; if both are, it takes one and notes the other, and the action is run again from the start for it.  When no
side is left every path was seen, and what holds at the end of each holds for the action.

Invariants are not quantified formulas: a fact about every block (or key, or position) is kept as a function and
instantiated at each term of that kind that the action or a goal mentions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import z3

from spec.proofs.symbols import places, witness
from spec.proofs.symbols.witness import Witness

RLIMIT = 6_000_000
"""Solver resources for one question; a question that needs more is `unknown`, and that is a failure."""
PROBES = (1, 2, 4)
"""Block sizes at which a counterexample is sought when the symbolic question was too hard to refute."""
LONGEST = 400
"""Decisions on one path; a longer one is an endless loop."""

VERDICT = {"unsat": "proved", "sat": "refuted", "unknown": "unknown"}

LONGEST_QUESTION = 80
"""Characters of a decision that are told."""

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
    """One question that was put to the solver: did `name` hold on this path?

    cost     in solver resources; 0 if nothing had to be asked, for the term is true as it stands
    witness  a counterexample, for the first path on which the name is refuted
    """

    name: str
    verdict: str
    cost: int
    witness: Witness | None = None

    @property
    def proved(self) -> bool:
        return self.verdict == "proved"


class Path:
    """One way through an action: its decisions, what is assumed, what was checked."""

    def __init__(self, verdicts_only: bool = False) -> None:
        self.verdicts_only = verdicts_only
        """Whether goals are asked together and counterexamples are left out: quicker, and no cost of each is known."""
        self.solver = z3.Solver()
        self.solver.set("random_seed", 0)
        self.solver.set("rlimit", RLIMIT)
        self.prefix: list[bool] = []
        self.decisions: list[bool] = []
        self.places: list[str] = []
        """Where each decision fell: file, line, text."""
        self.pending: list[list[bool]] = []
        self.checks: list[Check] = []
        self.block_size: Term = None
        self.world: Any = None
        self.reached = True
        """Whether some input leads to its end, as far as its decisions tell."""
        self.symbols: dict[str, Term] = {}
        """Numbers and truth values by name, in the order in which they came up."""
        self.explained: set[str] = set()
        """Names of checks that have a counterexample; shared by all paths of a case."""
        self._assumed: list[Term] = []
        self._decided: dict[int, tuple[bool, Term]] = {}
        self._names: Counter[str] = Counter()
        self._facts: dict[str, list[Fact]] = {}
        self._seen: dict[str, dict[Any, Term]] = {}

    def follow(self, prefix: list[bool]) -> Path:
        """A path that begins with all that was said on this one, then takes the decisions of `prefix`."""
        if self.decisions or self.checks:
            raise ValueError("only a beginning without decisions can be shared")
        path = Path(self.verdicts_only)
        path.prefix, path.block_size, path.explained = prefix, self.block_size, self.explained
        path.symbols = dict(self.symbols)
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
        return self._symbol(z3.Int, stem)

    def truth(self, stem: str) -> Term:
        return self._symbol(z3.Bool, stem)

    def _symbol(self, make: Callable[[str], Term], stem: str) -> Term:
        name = self.name(stem)
        self.symbols[name] = found = make(name)
        return found

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
        self.places.append(places.current_line())
        self._decided[term.get_id()] = value, term
        self.assume(term if value else z3.Not(term))
        return value

    def told_decisions(self) -> tuple[str, ...]:
        """Where each decision fell, and how; on a path on which something fails, also what was asked."""
        asked = [""] * len(self.decisions)
        if not all(check.proved for check in self.checks):
            asked = [f" ({_short(term)})" for _, term in self._decided.values()]
        return tuple(
            f"{place}{question}: {'yes' if taken else 'no'}"
            for place, question, taken in zip(self.places, asked, self.decisions, strict=True)
        )

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
            found = Check(name, "proved", 0)
        else:
            before = self._cost()
            answer, model = self._ask(z3.Not(term))
            found = Check(name, VERDICT[str(answer)], max(self._cost() - before, 1))
            if answer == z3.sat and not self.verdicts_only and name not in self.explained:
                self.explained.add(name)
                found.witness = witness.smallest([*self._assumed, z3.Not(term)], self.world.told(), term, model)
        self.checks.append(found)
        return found

    def check_all(self, goals: Mapping[str, Term]) -> None:
        """Checks each goal; where verdicts are enough, with as few questions as there are ways to fail."""
        if self.verdicts_only:
            self._check_together(dict(goals))
        else:
            for name, term in goals.items():
                self.check(name, term)

    def _check_together(self, open_goals: dict[str, Term]) -> None:
        """What a model makes false is refuted; the rest is asked again, until it is proved."""
        while open_goals:
            whole = z3.simplify(z3.And(*open_goals.values()))
            answer, model = (z3.unsat, None) if z3.is_true(whole) else self._ask(z3.Not(whole))
            if answer == z3.unsat:
                return
            refuted = [name for name, term in open_goals.items() if model and z3.is_false(model.eval(term))]
            if not refuted:
                for name, term in open_goals.items():
                    self.check(name, term)
                return
            self.checks += [Check(name, "refuted", 1) for name in refuted]
            open_goals = {name: term for name, term in open_goals.items() if name not in refuted}

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
        return answer, self.solver.model() if answer == z3.sat else None

    def _cost(self) -> int:
        statistics = self.solver.statistics()
        for at in reversed(range(len(statistics))):  # it stands at the end
            name, value = statistics[at]
            if name == "rlimit count":
                return int(value)
        return 0


def _short(term: Term) -> str:
    text = " ".join(str(term).split())
    return text if len(text) <= LONGEST_QUESTION else f"{text[:LONGEST_QUESTION]}..."


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


Prefix = tuple[bool, ...]
"""The first decisions of a path."""


def explore(start: Path, run: Callable[[Path], None], prefixes: Iterable[Prefix] = ((),)) -> Iterator[Path]:
    """Runs `run` once for each path that begins like `start`, then takes one of the prefixes.

    `run` may raise Cut or Infeasible.
    """
    pending = [list(prefix) for prefix in prefixes]
    while pending:
        with running(start.follow(pending.pop())) as path, suppress(Cut):
            try:
                run(path)
            except Infeasible:
                path.reached = False
        pending += path.pending
        yield path


class Reached:
    """For each line of `spec` that was run: the decisions after which it was, on each path that came to it.

    A path on which a line is not run is the same whatever stands there.
    """

    def __init__(self) -> None:
        self.prefixes: dict[tuple[str, int], set[Prefix]] = {}
        self._path: Path | None = None
        self._met: set[tuple[str, int]] = set()

    def __call__(self, module: str, line: int) -> None:
        path = _current[-1] if _current else None  # none while the modules are loaded: that is before every path
        if path is not self._path:
            self._path, self._met = path, set()
        if (module, line) not in self._met:
            self._met.add((module, line))
            self.prefixes.setdefault((module, line), set()).add(tuple(path.decisions) if path else ())
