"""The search itself: the laws hold in every committed scope, what stops early says so."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from spec.explore import stakes
from spec.explore.family import BLOCK_SIZES, BLOCKS, FEATURES, REQUESTS, family
from spec.explore.liveness import find_stuck
from spec.explore.runs import run_of
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED, SCOPES
from spec.explore.search import Graph, explore
from spec.explore.tests.seeded import BUGS
from spec.explore.unreached import UNREACHED
from spec.explore.world import KeysByContent, World, advance
from spec.laws import LAW_BY_ID
from spec.moves import Move
from spec.outcomes import OUTCOMES
from spec.vocabulary import QUIRKS


@pytest.mark.parametrize("scope", COMMITTED, ids=lambda scope: scope.name)
def test_every_law_holds_in_every_committed_scope(scope: Scope) -> None:
    graph = explore(scope)
    assert graph.breach is None
    assert not graph.stopped
    assert len(graph.edges) == len(graph.values)


def test_first_come_first_served_whatever_the_priority() -> None:
    scope = next(each for each in COMMITTED if each.name == "priorities")
    offers = tuple(replace(each, request=replace(each.request, priority=0)) for each in scope.offers)
    urgent, alike = explore(scope), explore(replace(scope, offers=offers))
    assert len({offer.request.priority for offer in scope.offers}) == 3
    assert (len(urgent.values), urgent.edges) == (len(alike.values), alike.edges)


def test_every_outcome_is_reached_or_listed() -> None:
    rows: Counter[tuple[str, str]] = Counter()
    for scope in COMMITTED:
        rows.update(explore(scope).rows)
    assert set(rows) <= set(OUTCOMES)
    assert set(OUTCOMES) - set(rows) == set(UNREACHED)


def test_every_law_is_at_stake_somewhere() -> None:
    at_stake: Counter[str] = Counter()
    for scope in COMMITTED:
        at_stake.update(explore(scope).stakes)
    assert set(stakes.STAKES) == set(LAW_BY_ID)
    assert set(at_stake) == set(LAW_BY_ID)


QUIRKS_BREAK = {
    "length_before_stop": ("stops", "FINISH"),
    "accepts_unservable": ("refusals", "PROGRESS"),
    "encoder_overcommit": ("items-in-a-block", "CAPS"),
    "encoder_kept_on_preemption": ("encoder-kept", "PROGRESS"),
    "splits_item_at_start": ("whole-items", "WHOLE"),
    "generated_block_names_last_item": ("items-in-a-block", "KEY"),
}
"""For each quirk, a scope in which following the release breaks a law, and which."""


@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_quirk_is_found(quirk: str) -> None:
    name, law = QUIRKS_BREAK[quirk]
    scope = next(scope for scope in (*COMMITTED, *(d.scope for d in DROPPED)) if scope.name == name)
    graph = explore(replace(scope, quirks=frozenset({quirk}), tolerated=frozenset()))
    assert graph.breach is not None
    assert graph.breach.violation.law == law


@pytest.mark.parametrize("requests", [2, 3])
def test_every_law_holds_in_the_family(requests: int) -> None:
    """With four requests it takes a minute: `schedspec explore` does that."""
    for scope in family():
        if len(scope.offers) == requests:
            graph = explore(scope)
            assert graph.breach is None, scope.name
            assert not graph.stopped
            assert find_stuck(graph) is None, scope.name


def test_a_search_that_reaches_its_limit_says_so() -> None:
    graph = explore(SCOPES["hits"], limit=50)
    assert graph.stopped == "limit of 50 states"
    assert len(graph.values) <= 50 + len(SCOPES["hits"].offers) + 1
    assert len(graph.edges) < len(graph.values)


def test_an_interrupted_search_keeps_what_it_has() -> None:
    scope = next(scope for scope in family() if scope.name == "again-3x4x2")

    def press_ctrl_c(graph: Graph) -> None:
        raise KeyboardInterrupt

    graph = explore(scope, progress=press_ctrl_c)
    assert graph.stopped == "interrupted"
    assert 0 < len(graph.edges) < len(graph.values)
    whole = explore(scope)
    assert graph.edges == whole.edges[: len(graph.edges)]


def test_the_way_to_a_breach_leads_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it is walked from the start, in one world, without any value in between."""
    bug = next(bug for bug in BUGS if bug.name == "take keeps the key")
    real = getattr(bug.module, bug.function)
    monkeypatch.setattr(bug.module, bug.function, lambda *args: bug.wrong(real, *args))
    graph = explore(SCOPES[bug.scope], rename=False)
    assert graph.breach is not None
    world = World(graph.scope, KeysByContent())
    for move in graph.way(graph.breach.state):
        assert not advance(world, move).violations
    assert advance(world, graph.breach.move).violations[0] == graph.breach.violation


def test_a_run_names_each_coming_of_a_request() -> None:
    scope = replace(SCOPES["preemption"], allowed=("step", "add", "abort"))
    moves = [Move("add", "a"), Move("abort", "a"), Move("step"), Move("add", "a"), Move("abort", "a")]
    told = [getattr(event, "request_id", "") or event for event in run_of(scope, moves)]
    assert told[1] == "a"
    assert told[4] == "a.2"


def test_the_family_is_a_grid_of_every_size_with_every_feature() -> None:
    scopes = list(family())
    sizes = {(len(s.offers), s.config.num_blocks - 1, s.config.block_size) for s in scopes}
    assert {requests for requests, _, _ in sizes} == set(REQUESTS)
    assert {blocks for _, blocks, _ in sizes} == set(BLOCKS)
    assert {size for _, _, size in sizes} == set(BLOCK_SIZES)
    assert {scope.name.rpartition("-")[0] for scope in scopes} == set(FEATURES)
    assert len({scope.name for scope in scopes}) == len(scopes)
