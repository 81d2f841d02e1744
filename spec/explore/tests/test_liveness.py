"""Liveness: nobody starves where the premises of PROGRESS hold, and somebody does where one is dropped."""

from __future__ import annotations

import pytest

from spec.explore.canonical import Request, value_of
from spec.explore.liveness import Stuck, find_stuck
from spec.explore.runs import concrete
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED, Dropped
from spec.explore.search import Edge, Graph, explore
from spec.explore.world import KeysByContent, World, advance
from spec.moves import Move


@pytest.mark.parametrize("scope", COMMITTED, ids=lambda scope: scope.name)
def test_nobody_is_stuck_where_the_premises_hold(scope: Scope) -> None:
    assert find_stuck(explore(scope)) is None


@pytest.mark.parametrize("dropped", DROPPED, ids=lambda dropped: dropped.scope.name)
def test_a_dropped_premise_gets_somebody_stuck(dropped: Dropped) -> None:
    graph = explore(dropped.scope)
    assert graph.breach is None
    stuck = find_stuck(graph)
    assert stuck is not None
    assert stuck.kind == dropped.kind
    _walk_round(graph, stuck)


def _walk_round(graph: Graph, stuck: Stuck) -> None:
    """Walks to the cycle and twice round it, in one world: the same state each time, the victim live throughout."""
    world = World(graph.scope, KeysByContent())
    for move in graph.way(stuck.state):
        advance(world, concrete(world, move))
    start, slots = value_of(world)
    victim = next(request_id for request_id, slot in slots.items() if slot == stuck.victim)
    stored = start.requests[stuck.victim]
    assert isinstance(stored, Request)
    for _ in range(2):
        for move in stuck.cycle:
            advance(world, concrete(world, move))
            assert victim in world.observer.live
        assert value_of(world)[0] == start


def test_a_cycle_of_other_moves_is_no_starvation() -> None:
    """A request may come and go for ever without a step: nobody owes it progress."""
    graph = explore(next(scope for scope in COMMITTED if scope.name == "grammars"))
    only = Graph(graph.scope, True, graph.values[:2], [[], []])
    live = next(s for s, v in enumerate(graph.values) if isinstance(v.requests[1], Request))
    only.values = [graph.values[live]]
    only.edges = [[Edge(Move("reset"), 0, (0, 1))]]
    assert find_stuck(only) is None
    only.edges = [[Edge(Move("step"), 0, (0, 1))]]
    found = find_stuck(only)
    assert found is not None
    assert found.kind == "deadlock"
