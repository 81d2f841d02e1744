"""A campaign of searches: every scope asked for, what each reached, what broke, what was never reached.

The report is a value and can be written as JSON.  A campaign that is interrupted reports what it has, and says what
it did not search.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

import msgspec

from conformance import trace
from spec.explore.family import family
from spec.explore.liveness import Stuck, find_stuck
from spec.explore.runs import run_of
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED
from spec.explore.search import INTERRUPTED, Graph, explore
from spec.laws import LAW_BY_ID
from spec.moves import Move
from spec.outcomes import OUTCOMES

EXPECTED = {dropped.scope.name: dropped for dropped in DROPPED}


class Searched(msgspec.Struct):
    """One scope.

    stopped  why the search is not complete, or empty
    breach   the law that broke, with its message
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


def campaign(
    scopes: Sequence[Scope],
    *,
    rename: bool,
    limit: int,
    workers: int,
    failures: Path,
    progress: Callable[[int, float, Graph], None] = lambda number, since, graph: None,
) -> Report:
    """Searches scope by scope; `progress` is told the scope's number, when it began and its graph so far."""
    report = Report(rename)
    rows: Counter[tuple[str, str]] = Counter()
    stakes: Counter[str] = Counter()
    try:
        for number, scope in enumerate(scopes):
            start = time.perf_counter()
            show = partial(progress, number, start)
            graph = explore(scope, rename=rename, limit=limit, workers=workers, progress=show)
            rows.update(graph.rows)
            stakes.update(graph.stakes)
            report.searched.append(_judged(graph, time.perf_counter() - start, failures))
            if graph.stopped == INTERRUPTED:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        report.interrupted = True
        report.not_searched = [scope.name for scope in scopes[len(report.searched) :]]
    report.outcomes = {f"{action}: {outcome}": rows[action, outcome] for action, outcome in OUTCOMES}
    report.never = [row for row, count in report.outcomes.items() if not count]
    report.laws_at_stake = {law: stakes[law] for law in LAW_BY_ID}
    report.laws_never_at_stake = [law for law, count in report.laws_at_stake.items() if not count]
    return report


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
        found.trace = write(graph, [*graph.way(graph.breach.state), graph.breach.move], found.breach, failures)
    elif not graph.stopped and (stuck := find_stuck(graph)) is not None:
        found.stuck = told(graph, stuck)
        if dropped is None:
            found.trace = write(graph, [*graph.way(stuck.state), *stuck.cycle], found.stuck, failures)
    return found


def told(graph: Graph, stuck: Stuck) -> str:
    """A cycle without progress, in one line."""
    name = graph.scope.ids[stuck.victim]
    return f"{stuck.kind} of {name} after {_moves(graph.way(stuck.state))}; round: {_moves(stuck.cycle)}"


def _moves(moves: Iterable[Move]) -> str:
    return ", ".join(f"{move.kind} {move.target}".strip() for move in moves)


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
