"""Renaming is sound: the searches with and without it reach the same states, edges and bugs."""

from __future__ import annotations

import pytest

from spec.explore.canonical import value_of, world_of
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED, SCOPES
from spec.explore.search import explore
from spec.explore.tests.seeded import BUGS, Bug
from spec.explore.world import KeysByContent

ALL = (*COMMITTED, *(dropped.scope for dropped in DROPPED))
WITHOUT_RENAMING = 5_000
"""States up to which a scope is searched without renaming; beyond, what was reached so far is compared."""

MOVES_COMPARED = 6
"""Moves from the initial state within which everything is compared in any case."""


@pytest.mark.parametrize("scope", ALL, ids=lambda scope: scope.name)
def test_the_renamed_graph_is_the_quotient_of_the_plain_one(scope: Scope) -> None:
    renamed, plain = explore(scope), explore(scope, rename=False, limit=WITHOUT_RENAMING)
    keys = KeysByContent()
    names = [value_of(world_of(scope, value, keys))[0] for value in plain.values]
    number = {value: state for state, value in enumerate(renamed.values)}
    for name, edges in zip(names, plain.edges, strict=False):
        expected = {(edge.move.kind, renamed.values[edge.target]) for edge in renamed.edges[number[name]]}
        assert {(edge.move.kind, names[edge.target]) for edge in edges} == expected
    complete = plain.depth if plain.stopped else plain.depth + 1
    near = {value for value, depth in zip(renamed.values, renamed.depths, strict=True) if depth < complete}
    assert near <= set(names)
    assert complete > MOVES_COMPARED or not plain.stopped
    if not plain.stopped:
        assert set(names) == set(renamed.values)
        assert (plain.rows.keys(), plain.stakes.keys()) == (renamed.rows.keys(), renamed.stakes.keys())


@pytest.mark.parametrize("scope", ALL, ids=lambda scope: scope.name)
def test_a_world_and_its_value_are_the_same(scope: Scope) -> None:
    keys = KeysByContent()
    for value in explore(scope).values:
        again, slots = value_of(world_of(scope, value, keys))
        assert again == value
        assert slots == scope.index_of


@pytest.mark.parametrize("name", ["preemption", "hits"])
def test_renaming_pays(name: str) -> None:
    """Where equal requests come for ever, the blocks of a pool in any order are one state."""
    renamed = explore(SCOPES[name])
    plain = explore(SCOPES[name], rename=False, limit=20 * len(renamed.values))
    assert plain.stopped


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_seeded_bug_is_found_equally_near(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = SCOPES[bug.scope]
    real = getattr(bug.module, bug.function)
    monkeypatch.setattr(bug.module, bug.function, lambda *args: bug.wrong(real, *args))
    with_renaming, without = explore(scope), explore(scope, rename=False)
    assert with_renaming.breach is not None
    assert without.breach is not None
    assert with_renaming.breach.violation.law == bug.law
    assert with_renaming.depths[with_renaming.breach.state] == without.depths[without.breach.state]


def test_a_key_does_not_depend_on_what_came_first() -> None:
    forward, backward = KeysByContent(), KeysByContent()
    contents = [(0, 0, (), (1, 2)), (0, 1, (), (1, 2)), (0, 0, ((7, 0),), (1, 2))]
    keys = [forward.setdefault(content) for content in contents]
    assert keys == [backward.setdefault(content) for content in reversed(contents)][::-1]
    assert len(set(keys)) == len(contents)
