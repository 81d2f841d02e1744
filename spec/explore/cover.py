"""Few runs that take every edge of a graph: always on to the nearest edge that no run took yet."""

from __future__ import annotations

from collections import deque

from spec.explore.search import Graph, State
from spec.moves import Move

LONGEST_RUN = 120
"""Moves after which a run ends as soon as all edges near by were taken."""


def cover(graph: Graph, longest: int = LONGEST_RUN) -> list[list[Move]]:
    """Runs from the initial state; each is a list of moves whose targets are slots of the state before."""
    untaken = [set(range(len(edges))) for edges in graph.edges]
    runs: list[list[Move]] = []
    run: list[Move] = []
    state: State = 0
    while True:
        way = _to_untaken(graph, untaken, state)
        if way is None or (run and len(run) + len(way) > longest):
            if not run:
                return runs
            runs.append(run)
            run, state = [], 0
            continue
        for number in way:
            untaken[state].discard(number)
            edge = graph.edges[state][number]
            run.append(edge.move)
            state = edge.target


def _to_untaken(graph: Graph, untaken: list[set[int]], start: State) -> list[int] | None:
    """The shortest way, as edge numbers, whose last edge no run took yet; None if there is no such edge ahead."""
    came: dict[State, tuple[State, int]] = {}
    frontier = deque([start])
    seen = {start}
    while frontier:
        state = frontier.popleft()
        if untaken[state]:
            return [*_way(came, start, state), min(untaken[state])]
        for number, edge in enumerate(graph.edges[state]):
            if edge.target not in seen:
                seen.add(edge.target)
                came[edge.target] = (state, number)
                frontier.append(edge.target)
    return None


def _way(came: dict[State, tuple[State, int]], start: State, state: State) -> list[int]:
    numbers = []
    while state != start:
        state, number = came[state]
        numbers.append(number)
    return numbers[::-1]
