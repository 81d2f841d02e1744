"""Liveness, decided on the graph: deadlocks, and cycles in which somebody computes nothing new.

Known tokens never become fewer, so in a cycle no request samples anything: whoever is live all the way round a
cycle that has a step in it, and waits for no grammar, starves.  If steps alone go round, nobody gets on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from spec.explore.canonical import Request, Slot, Value
from spec.explore.search import Edge, Graph, State
from spec.moves import Move
from spec.vocabulary import Status


class Stuck(NamedTuple):
    """A reachable cycle without progress.

    kind    `deadlock`: a step changes nothing; `livelock`: steps alone go round; `starvation`: with other moves
    state   the state of the cycle that is nearest to the initial one
    cycle   the moves that lead back to it, each target named by its slot in the state before
    victim  the slot in `state` of a request that gets nowhere
    """

    kind: str
    state: State
    cycle: tuple[Move, ...]
    victim: Slot


def find_stuck(graph: Graph) -> Stuck | None:
    """The cycle without progress that is nearest to the initial state: by steps alone if there is one."""
    return _by_steps_alone(graph) or _starvation(graph)


def waits_for_a_step(value: Value, slot: Slot) -> bool:
    """Whether the request in a slot is live and waits for no grammar."""
    stored = value.requests[slot]
    return isinstance(stored, Request) and (stored.grammar_ready or stored.status != Status.WAITING_FOR_GRAMMAR)


# --- steps alone ---------------------------------------------------------------------------------


def _by_steps_alone(graph: Graph) -> Stuck | None:
    """Each state has one step, so that following steps from anywhere ends in a cycle."""
    after = [next((e.target for e in edges if e.move.kind == "step"), None) for edges in graph.edges]
    seen: set[State] = set()
    for start in range(len(after)):
        way: dict[State, int] = {}
        state: State | None = start
        while state is not None and state < len(after) and state not in seen:
            seen.add(state)
            way[state] = len(way)
            state = after[state]
        if state is None or state not in way:
            continue
        cycle = [s for s, place in way.items() if place >= way[state]]
        nearest = min(cycle)
        victim = next((s for s in range(len(graph.scope.ids)) if waits_for_a_step(graph.values[nearest], s)), None)
        if victim is not None:
            kind = "deadlock" if len(cycle) == 1 else "livelock"
            return Stuck(kind, nearest, (Move("step"),) * len(cycle), victim)
    return None


# --- with other moves ----------------------------------------------------------------------------

Node = tuple[State, Slot]
"""A request in a state, followed through renaming."""


def _starvation(graph: Graph) -> Stuck | None:
    for component in _components(graph):
        inside = set(component)
        for node in sorted(component):
            for edge, target in _stays(graph, node):
                if edge.move.kind == "step" and target in inside:
                    return Stuck("starvation", node[0], _round_trip(graph, node, edge, target, inside), node[1])
    return None


def _stays(graph: Graph, node: Node) -> Iterator[tuple[Edge, Node]]:
    """The edges through which a request stays live."""
    state, slot = node
    if state >= len(graph.edges):
        return
    for edge in graph.edges[state]:
        target = edge.renamed[slot]
        if waits_for_a_step(graph.values[edge.target], target):
            yield edge, (edge.target, target)


def _components(graph: Graph) -> Iterator[list[Node]]:
    """Strongly connected components (Tarjan, without recursion), in no order that matters."""
    order: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    open_nodes: set[Node] = set()
    slots = range(len(graph.scope.ids))
    roots = ((s, slot) for s in range(len(graph.edges)) for slot in slots if waits_for_a_step(graph.values[s], slot))
    for root in roots:
        if root in order:
            continue
        work = [(root, _stays(graph, root))]
        order[root] = low[root] = len(order)
        stack.append(root)
        open_nodes.add(root)
        while work:
            node, edges = work[-1]
            step = next(edges, None)
            if step is not None:
                target = step[1]
                if target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    open_nodes.add(target)
                    work.append((target, _stays(graph, target)))
                elif target in open_nodes:
                    low[node] = min(low[node], order[target])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == order[node]:
                component = [stack.pop()]
                while component[-1] != node:
                    component.append(stack.pop())
                open_nodes.difference_update(component)
                yield component


def _round_trip(graph: Graph, node: Node, first: Edge, target: Node, inside: set[Node]) -> tuple[Move, ...]:
    """The shortest way round a component that begins with an edge."""
    came: dict[Node, tuple[Node, Move]] = {}
    frontier = [target]
    while frontier and node != target and node not in came:
        reached: list[Node] = []
        for at in frontier:
            for edge, then in _stays(graph, at):
                if then in inside and then not in came and then != target:
                    came[then] = (at, edge.move)
                    reached.append(then)
        frontier = reached
    moves: list[Move] = []
    at = node
    while at != target:
        at, move = came[at]
        moves.append(move)
    return (first.move, *reversed(moves))
