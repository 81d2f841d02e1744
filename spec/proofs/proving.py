"""Proves the cases, on as many processes as there are cores, and gathers what came out.

`unknown` is a failure like `refuted`; so is a path that no input takes, and an invariant that says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TypeVar

import z3

from spec.outcomes import OUTCOMES
from spec.proofs import invariants, sources
from spec.proofs.cases import Case, prove
from spec.proofs.paths import Path, running
from spec.proofs.theorems import CASES, THEOREM_BY_ID, theorem_of
from spec.proofs.world import World

T = TypeVar("T")
A = TypeVar("A")

Lines = frozenset[tuple[str, int]]
"""Functions that ran: module and first line."""


@dataclass
class Failure:
    """An obligation that does not hold: where, and the values of a counterexample, before and after."""

    case: str
    obligation: str
    path: str
    verdict: str
    values: dict[str, tuple[str, str]]


@dataclass
class Obligation:
    """A goal of a case, on all paths; `cost` is in solver resources."""

    case: str
    name: str
    theorem: str
    bounded: str
    paths: int = 0
    cost: int = 0
    verdict: str = "proved"


@dataclass
class Proved:
    """What came out of one case."""

    case: str
    obligations: list[Obligation] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    outcomes: frozenset[tuple[str, str]] = frozenset()
    vacuous: tuple[str, ...] = ()
    paths: int = 0
    lines: Lines = frozenset()


def prove_case(case: Case) -> Proved:
    """All obligations of a case, on the real text."""
    lines: set[tuple[str, int]] = set()
    modules = sources.load(executed=lambda module, line: lines.add((module, line)))
    ways = prove(case, modules)
    found = Proved(case.name, paths=len(ways))
    rows: dict[str, Obligation] = {}
    logged: set[tuple[str, str]] = set()
    for way in ways:
        for check in way.checks:
            row = rows.setdefault(check.name, Obligation(case.name, check.name, theorem_of(check.name), case.bounded))
            row.paths, row.cost = row.paths + 1, row.cost + check.cost
            if not check.proved:
                row.verdict = check.verdict
                found.failures.append(Failure(case.name, check.name, way.outcome, check.verdict, check.values))
        if way.possible:
            logged |= set(way.log)
    found.obligations = list(rows.values())
    found.vacuous = tuple(way.outcome or "(logs nothing)" for way in ways if not way.possible)
    found.outcomes, found.lines = frozenset(logged), frozenset(lines)
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
