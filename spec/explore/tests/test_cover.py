"""The cover: runs that start at the beginning and take every edge."""

from __future__ import annotations

import pytest

from spec.explore.cover import LONGEST_RUN, cover
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED
from spec.explore.search import explore


@pytest.mark.parametrize("scope", COMMITTED, ids=lambda scope: scope.name)
def test_every_edge_is_taken(scope: Scope) -> None:
    graph = explore(scope)
    taken = set()
    for run in cover(graph):
        assert len(run) <= LONGEST_RUN
        state = 0
        for move in run:
            number = [edge.move for edge in graph.edges[state]].index(move)
            taken.add((state, number))
            state = graph.edges[state][number].target
    assert taken == {(state, number) for state, edges in enumerate(graph.edges) for number in range(len(edges))}
