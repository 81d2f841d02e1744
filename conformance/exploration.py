"""A campaign of searches: every scope asked for, what each reached, what broke, what was never reached.

The report is a value and can be written as JSON.  A campaign that is interrupted reports what it has, and says what
it did not search.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import msgspec

from conformance import trace
from spec.explore.family import family
from spec.explore.liveness import Stuck, find_stuck
from spec.explore.runs import describe, follow, run_of
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED
from spec.explore.search import DEFAULT_LIMIT, INTERRUPTED, Graph, Progress, explore
from spec.laws import LAW_BY_ID
from spec.moves import Move
from spec.outcomes import OUTCOMES

EXPECTED = {dropped.scope.name: dropped for dropped in DROPPED}


class Searched(msgspec.Struct):
    """One scope.

    stopped  why the search is not complete, or empty
    breach   the law that broke, with its message
    way      the moves of the shortest way to the breach
    stuck    the kind of a cycle without progress, with its moves
    premise  the premise that is dropped in this scope: it must get stuck
    trace    the file with the shortest run to the breach or the cycle
    """

    name: str
    about: str
    states: int
    transitions: int
    depth: int
    seconds: float
    stopped: str = ""
    breach: str = ""
    way: str = ""
    stuck: str = ""
    premise: str = ""
    trace: str = ""

    @property
    def failed(self) -> bool:
        """A breach, a cycle that must not be, or none where there must be one."""
        missing = bool(self.premise) and not self.stuck and not self.stopped
        return bool(self.breach) or missing or (bool(self.stuck) and not self.premise)


class Report(msgspec.Struct):
    """A campaign; `never` and `laws_never_at_stake` are what remains of the tables of outcomes and laws."""

    renaming: bool
    searched: list[Searched] = []
    not_searched: list[str] = []
    outcomes: dict[str, int] = {}
    never: list[str] = []
    laws_at_stake: dict[str, int] = {}
    laws_never_at_stake: list[str] = []
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        return not self.interrupted and not any(each.stopped for each in self.searched)


class UnknownScope(ValueError):
    """A pattern that names no scope; the text says what there is."""


def chosen(patterns: Sequence[str]) -> list[Scope]:
    """The scopes whose name matches one of the patterns, all of them without any.  Raises UnknownScope."""
    scopes = [*COMMITTED, *(dropped.scope for dropped in DROPPED), *family()]
    for pattern in patterns:
        if not any(fnmatchcase(scope.name, pattern) for scope in scopes):
            names = ", ".join(scope.name for scope in COMMITTED)
            raise UnknownScope(f"no scope matches {pattern!r}; there are {names}, and the family such as plain-2x4x2")
    return [s for s in scopes if not patterns or any(fnmatchcase(s.name, pattern) for pattern in patterns)]


class Settings(NamedTuple):
    """How each scope is searched; `failures` is where the shortest failing runs are written."""

    rename: bool = True
    limit: int = DEFAULT_LIMIT
    failures: Path = Path("failures")


class Result(NamedTuple):
    """What the search of one scope gave."""

    searched: Searched
    rows: Counter[tuple[str, str]]
    stakes: Counter[str]


def search(scope: Scope, settings: Settings, progress: Progress = lambda graph: None) -> Result:
    """Searches one scope and judges it: laws, then liveness."""
    start = time.perf_counter()
    graph = explore(scope, rename=settings.rename, limit=settings.limit, progress=progress)
    return Result(_judged(graph, time.perf_counter() - start, settings.failures), graph.rows, graph.stakes)


def summed(scopes: Sequence[Scope], results: Sequence[Result], settings: Settings) -> Report:
    """The report of a campaign over `scopes`; those without a result were not searched."""
    searched = [result.searched for result in results]
    names = {each.name for each in searched}
    missing = [scope.name for scope in scopes if scope.name not in names]
    rows: Counter[tuple[str, str]] = Counter()
    stakes: Counter[str] = Counter()
    for result in results:
        rows.update(result.rows)
        stakes.update(result.stakes)
    outcomes = {f"{action}: {outcome}": rows[action, outcome] for action, outcome in OUTCOMES}
    return Report(
        settings.rename,
        searched,
        missing,
        outcomes,
        never=[row for row, count in outcomes.items() if not count],
        laws_at_stake={law: stakes[law] for law in LAW_BY_ID},
        laws_never_at_stake=[law for law in LAW_BY_ID if not stakes[law]],
        interrupted=bool(missing) or any(each.stopped == INTERRUPTED for each in searched),
    )


def _judged(graph: Graph, seconds: float, failures: Path) -> Searched:
    scope = graph.scope
    dropped = EXPECTED.get(scope.name)
    found = Searched(
        *(scope.name, scope.about, len(graph.values), graph.transitions, graph.depth),
        *(round(seconds, 3), graph.stopped),
        premise=dropped.premise if dropped else "",
    )
    if graph.breach is not None:
        found.breach = str(graph.breach.violation)
        way = [*graph.way(graph.breach.state), graph.breach.move]
        found.way = describe(run_of(scope, way, rename=graph.renames))
        found.trace = write(graph, way, found.breach, failures)
    elif not graph.stopped and (stuck := find_stuck(graph)) is not None:
        found.stuck = told(graph, stuck)
        if dropped is None:
            found.trace = write(graph, [*graph.way(stuck.state), *stuck.cycle], found.stuck, failures)
    return found


def told(graph: Graph, stuck: Stuck) -> str:
    """A cycle without progress, in one line."""
    before = graph.way(stuck.state)
    events, names = follow(graph.scope, before, rename=graph.renames)
    round_trip = run_of(graph.scope, [*before, *stuck.cycle], rename=graph.renames)[len(before) :]
    return f"{stuck.kind} of {names[stuck.victim]} after {describe(events)}; round: {describe(round_trip)}"


def write(graph: Graph, moves: Sequence[Move], note: str, directory: Path) -> str:
    """Writes a run as a trace; returns the file's name.  Its id is made of scope and content."""
    scope = graph.scope
    events = run_of(scope, moves, rename=graph.renames)
    header = trace.Header(trace.SCHEMA_VERSION, "", scope.profile.name, scope.config)
    digest = hashlib.sha256(trace.encode(header, events)).hexdigest()[:8]
    header = msgspec.structs.replace(header, id=f"explore-{scope.name}-{digest}", note=note)
    path = directory / f"{header.id}.jsonl"
    trace.write(path, header, events)
    return str(path)


def encode(report: Report) -> bytes:
    """The report as JSON, with whether it is complete."""
    told = {"complete": report.complete, **msgspec.to_builtins(report)}
    return msgspec.json.format(msgspec.json.encode(told)) + b"\n"
