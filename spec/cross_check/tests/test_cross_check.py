"""The counting core has the same states and transitions in Promela; skipped where SPIN is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spec.cross_check import spin
from spec.cross_check.cores import COMPARED
from spec.explore.scope import Scope
from spec.explore.search import explore

needs_spin = pytest.mark.skipif(bool(spin.missing()), reason=f"not installed: {spin.missing()}")


@needs_spin
@pytest.mark.parametrize("scope", COMPARED, ids=lambda scope: scope.name)
def test_spin_finds_the_same_states_and_transitions(scope: Scope) -> None:
    graph = explore(scope, rename=False)
    assert graph.breach is None
    assert not graph.stopped
    found = spin.count(scope)
    assert (found.states, found.transitions, found.errors) == (len(graph.values), graph.transitions, 0)


@needs_spin
def test_the_comparison_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that releases a table tail first has another free queue, hence other states."""
    front_first = "queue[frees] = BLOCK(request, j); frees++; BLOCK(request, j) = 0; j++"
    tail_first = "queue[frees] = BLOCK(request, held[request] - 1 - j); frees++; j++"
    model = spin.MODEL.read_text()
    assert front_first in model
    cleared = "    for (j : 0 .. BLOCKS - 1) { BLOCK(request, j) = 0 }\n    held[request] = 0"
    changed = tmp_path / "core.pml"
    changed.write_text(model.replace(front_first, tail_first).replace("    held[request] = 0", cleared))
    monkeypatch.setattr(spin, "MODEL", changed)
    found = spin.count(next(scope for scope in COMPARED if scope.name == "once"))
    graph = explore(next(scope for scope in COMPARED if scope.name == "once"), rename=False)
    assert not found.errors
    assert (found.states, found.transitions) != (len(graph.values), graph.transitions)
