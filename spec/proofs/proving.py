"""Proves the cases, on as many processes as there are cores, and gathers what came out.

`unknown` is a failure like `refuted`; so is a path that no input takes, and an invariant that says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import NamedTuple, TypeVar

import z3

from spec.outcomes import OUTCOMES
from spec.proofs.cases.case import Case, Way, ways
from spec.proofs.state import invariants
from spec.proofs.state.world import World
from spec.proofs.symbols import sources
from spec.proofs.symbols.paths import Path, Prefix, Reached, running
from spec.proofs.theorems import CASES, THEOREM_BY_ID, theorem_of

T = TypeVar("T")
A = TypeVar("A")

PROVED = "proved"

Line = tuple[str, int]
"""Of which module."""


@dataclass
class Failure:
    """An obligation that does not hold.

    path      what the scheduler logged on the first path on which it fails, and where that path decided
    paths     on how many paths it fails
    values    a counterexample: the numbers before the action, and where the check failed
    about     which of them the obligation speaks of
    """

    case: str
    obligation: str
    verdict: str
    path: str
    decisions: tuple[str, ...]
    paths: int = 1
    values: dict[str, tuple[str, str]] = field(default_factory=dict)
    about: tuple[str, ...] = ()


class OnPath(NamedTuple):
    """An obligation on one path, which is told by its number; `cost` in solver resources, 0 if nothing was asked."""

    path: int
    verdict: str
    cost: int


@dataclass
class Obligation:
    """A goal of a case, on all paths on which it comes up."""

    case: str
    name: str
    theorem: str
    bounded: str
    paths: list[OnPath] = field(default_factory=list)

    @property
    def cost(self) -> int:
        return sum(each.cost for each in self.paths)

    @property
    def verdict(self) -> str:
        return next((each.verdict for each in self.paths if each.verdict != PROVED), PROVED)

    @property
    def trivial(self) -> bool:
        """Whether it is true as it stands: the solver was asked nothing, such as where the same term stands before
        and after an action that does not touch it."""
        return all(each == (each.path, PROVED, 0) for each in self.paths)


class ToldPath(NamedTuple):
    """A path of a case: what the scheduler logged on it, and where it decided."""

    logged: str
    decisions: tuple[str, ...]
    possible: bool


@dataclass
class Proved:
    """What came out of one case."""

    case: str
    obligations: list[Obligation] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    paths: list[ToldPath] = field(default_factory=list)
    outcomes: frozenset[tuple[str, str]] = frozenset()
    reached: dict[Line, set[Prefix]] = field(default_factory=dict)

    @property
    def vacuous(self) -> list[str]:
        """Paths that no input takes."""
        return [path.logged or "(logs nothing)" for path in self.paths if not path.possible]


def prove_case(case: Case) -> Proved:
    """All obligations of a case, on the real text."""
    reached = Reached()
    modules = sources.load(executed=reached)
    found = Proved(case.name, reached=reached.prefixes)
    rows: dict[str, Obligation] = {}
    failures: dict[str, Failure] = {}
    logged: set[tuple[str, str]] = set()
    for number, way in enumerate(ways(case, modules)):
        found.paths.append(ToldPath(way.logged, way.decisions, way.possible))
        for name, on_path in _by_name(number, way).items():
            row = rows.setdefault(name, Obligation(case.name, name, theorem_of(name), case.bounded))
            row.paths.append(on_path)
            if on_path.verdict != PROVED:
                _note(failures, failure_of(case.name, name, way))
        if way.possible:
            logged |= set(way.log)
    found.obligations, found.failures = list(rows.values()), list(failures.values())
    found.outcomes = frozenset(logged)
    return found


def _by_name(number: int, way: Way) -> dict[str, OnPath]:
    """The checks of a path; one that came up several times is as good as the worst of them."""
    found: dict[str, OnPath] = {}
    for check in way.checks:
        before = found.get(check.name, OnPath(number, PROVED, 0))
        verdict = check.verdict if before.verdict == PROVED else before.verdict
        found[check.name] = OnPath(number, verdict, before.cost + check.cost)
    return found


def _note(failures: dict[str, Failure], new: Failure) -> None:
    """One failure of each name: the first that has a counterexample, and on how many paths it fails."""
    old = failures.setdefault(new.obligation, new)
    if old is not new:
        new.paths = old.paths = old.paths + 1
        if new.values and not old.values:
            failures[new.obligation] = new


def failure_of(case: str, name: str, way: Way) -> Failure:
    """What a path on which a check fails tells about it."""
    failed = [check for check in way.checks if check.name == name and not check.proved]
    check = next((each for each in failed if each.witness is not None), failed[0])
    found = Failure(case, name, check.verdict, way.logged, way.decisions)
    if check.witness is not None:
        found.values, found.about = check.witness.values, check.witness.about
    return found


def chosen(only: str) -> list[Case]:
    """The cases whose name contains `only`; all of them if it names a theorem."""
    return list(CASES) if only in THEOREM_BY_ID else [case for case in CASES if only in case.name]


def of_theorem(proved: list[Proved], theorem: str) -> list[Proved]:
    """What serves one theorem, of all that was proved."""
    for each in proved:
        each.obligations = [row for row in each.obligations if row.theorem == theorem]
        each.failures = [failure for failure in each.failures if theorem_of(failure.obligation) == theorem]
    return [each for each in proved if each.obligations]


def prove_all(cases: Iterable[Case], tell: Callable[[], None] = lambda: None) -> list[Proved]:
    """The cases in their order; `tell` is called behind each that is done."""
    names = {case.name: number for number, case in enumerate(CASES)}
    found = dict(side_by_side(_prove_numbered, [names[case.name] for case in cases], tell))
    return [found[number] for number in sorted(found)]


def _prove_numbered(number: int) -> Proved:
    return prove_case(CASES[number])


def side_by_side(work: Callable[[A], T], arguments: list[A], tell: Callable[[], None]) -> Iterator[tuple[A, T]]:
    """The answers of `work`, as they come."""
    if len(arguments) <= 1:
        for each in arguments:
            yield each, work(each)
            tell()
        return
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(work, each): each for each in arguments}
        for done in as_completed(waiting):
            yield waiting[done], done.result()
            tell()


LOGGED_BY_LOOPS = frozenset(
    (
        *(("admissions", name) for name in ("preempted", "queue empty", "budget", "seats")),
        ("visit", "all visited"),
        ("visit", "budget"),
    )
)
"""Outcomes that `schedule` logs when a guard ends one of its loops; the guards are cases of their own."""


def unreached(proved: Iterable[Proved]) -> list[str]:
    """Outcomes of the spec that no path of any case reaches."""
    seen = frozenset().union(*(each.outcomes for each in proved))
    return [f"{action}: {how}" for action, how in OUTCOMES if (action, how) not in seen | LOGGED_BY_LOOPS]


# --- vacuity -------------------------------------------------------------------------------------


def silent_invariants() -> list[str]:
    """Invariants that say nothing: no state in which all hold makes the premise true."""
    silent: list[str] = []

    with running(Path()) as path:
        world = World(path, sources.load())
        if not path.possible():
            silent.append("all of them together")
        for kind, facts in invariants.each(world).items():
            for name, fact in facts.items():
                formula = fact(world.any[kind])
                premise = formula.arg(0) if z3.is_implies(formula) else z3.BoolVal(True)
                if not path.possible(premise):
                    silent.append(name)
    return silent
