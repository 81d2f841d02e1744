"""Breadth first: everything that is reachable in a scope, as a graph, and the shortest way to a breach.

States are expanded in the order in which they were found, so that a search always gives the same graph.  A search that
is stopped, by its limit or by Ctrl-C, says that it is not complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from spec.explore.canonical import Slot, Value, value_of, world_of
from spec.explore.scope import Scope
from spec.explore.world import KeysByContent, World, advance
from spec.laws import Violation
from spec.moves import Move

State = int
"""A state by its number, in the order in which states were found; 0 is the initial one."""

DEFAULT_LIMIT = 200_000
"""States after which a search gives up: at most some 2 KB each are kept."""

INTERRUPTED = "interrupted"

STATES_BETWEEN_REPORTS = 64
"""Expanded states from one report of progress to the next."""


class Edge(NamedTuple):
    """A move out of a state.

    renamed  the slot in `target` of each slot of the source
    """

    move: Move
    target: State
    renamed: tuple[Slot, ...]


class Breach(NamedTuple):
    """A broken law, and the move out of a state that broke it."""

    state: State
    move: Move
    violation: Violation


@dataclass
class Graph:
    """What was reached.

    values   the states
    edges    of each expanded state, in the order of its moves
    found    for each state but the first, from where and by which move it was first reached
    rows     outcomes of micro-steps, with how many edges took them
    stakes   laws that were at stake, in how many edges
    stopped  why the search is not complete, or empty
    """

    scope: Scope
    renames: bool
    values: list[Value] = field(default_factory=list)
    edges: list[list[Edge]] = field(default_factory=list)
    found: list[tuple[State, Move]] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    transitions: int = 0
    rows: Counter[tuple[str, str]] = field(default_factory=Counter)
    stakes: Counter[str] = field(default_factory=Counter)
    breach: Breach | None = None
    stopped: str = ""

    @property
    def depth(self) -> int:
        """Moves to the state that is farthest from the initial one."""
        return self.depths[-1] if self.depths else 0

    def way(self, state: State) -> list[Move]:
        """The moves of a shortest way to a state; each target is named by its slot in the state before."""
        moves = []
        while state:
            state, move = self.found[state]
            moves.append(move)
        return moves[::-1]


class Step(NamedTuple):
    """One edge before its target has a number; without a value where a law broke."""

    move: Move
    value: Value | None
    renamed: tuple[Slot, ...]
    rows: tuple[tuple[str, str], ...]
    stakes: tuple[str, ...]
    violations: list[Violation]


Progress = Callable[[Graph], None]


def explore(
    scope: Scope,
    *,
    rename: bool = True,
    limit: int = DEFAULT_LIMIT,
    progress: Progress = lambda graph: None,
) -> Graph:
    """The graph of a scope, up to the first breach in breadth-first order."""
    graph, keys = Graph(scope, rename), KeysByContent()
    initial, _ = value_of(World(scope, keys), rename=rename)
    numbers = {initial: 0}
    graph.values, graph.found, graph.depths = [initial], [(0, Move("step"))], [0]
    try:
        while len(graph.edges) < len(graph.values) and graph.breach is None and not graph.stopped:
            _record(graph, numbers, expand(scope, rename, keys, graph.values[len(graph.edges)]))
            if len(graph.values) > limit:
                graph.stopped = f"limit of {limit} states"
            if len(graph.edges) % STATES_BETWEEN_REPORTS == 0:
                progress(graph)
    except KeyboardInterrupt:
        graph.stopped = INTERRUPTED
    return graph


def _record(graph: Graph, numbers: dict[Value, State], steps: list[Step]) -> None:
    """Adds the edges of the next unexpanded state; an edge list appears only when it is complete."""
    source = len(graph.edges)
    edges = []
    for step in steps:
        graph.rows.update(set(step.rows))
        graph.stakes.update(step.stakes)
        if step.violations or step.value is None:
            graph.breach = Breach(source, step.move, step.violations[0])
            break
        target = numbers.get(step.value)
        if target is None:
            target = numbers[step.value] = len(graph.values)
            graph.values.append(step.value)
            graph.found.append((source, step.move))
            graph.depths.append(graph.depths[source] + 1)
        edges.append(Edge(step.move, target, step.renamed))
    graph.edges.append(edges)
    graph.transitions += len(edges)


def expand(scope: Scope, rename: bool, keys: KeysByContent, value: Value) -> list[Step]:
    """Every move out of a state, each in a world of its own."""
    steps = []
    first = world_of(scope, value, keys)
    for number, move in enumerate(first.moves()):
        world = world_of(scope, value, keys) if number else first
        outcome = advance(world, move)
        if outcome.violations:
            steps.append(Step(move, None, (), outcome.rows, outcome.stakes, outcome.violations))
            break
        reached, slots = value_of(world, rename=rename)
        renamed = tuple([slots[request_id] for request_id in scope.ids])
        steps.append(Step(move, reached, renamed, outcome.rows, outcome.stakes, []))
    return steps
