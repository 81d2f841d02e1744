"""Every mutant of the actions makes a proof fail, or is listed with the reason why it cannot."""

from __future__ import annotations

import pytest
import z3

from spec.proofs import mutation
from spec.proofs.cases.case import ways
from spec.proofs.proving import Proved, prove_all, prove_case
from spec.proofs.symbols import sources
from spec.proofs.symbols.paths import Path, running
from spec.proofs.theorems import CASES


@pytest.fixture(scope="module")
def proved() -> list[Proved]:
    return prove_all(CASES)


@pytest.mark.xdist_group("mutants")
def test_every_mutant_dies_or_is_listed(proved: list[Proved]) -> None:
    fates = mutation.run(proved, until=mutation.Until.PATH)
    assert [fate.mutant.name for fate in fates if fate.unknown] == []
    assert sorted(fate.mutant.name for fate in fates if not fate.killed_by) == sorted(mutation.EQUIVALENT)
    assert len(fates) > 300


SOME = [mutant for mutant in mutation.mutants() if "_extend_table" in mutant.name or "demand_of_running" in mutant.name]


@pytest.mark.xdist_group("mutants")
@pytest.mark.parametrize("mutant", SOME[::6], ids=lambda mutant: mutant.name)
def test_all_kills_are_those_of_every_path_and_every_goal_alone(mutant: mutation.Mutant, proved: list[Proved]) -> None:
    """Neither the paths that are left out nor the goals that are asked together hide a kill."""
    starts = mutation.concerned(mutant, proved)
    modules = mutant.modules()
    alone = {
        case: sorted({check.name for way in ways(mutation.CASE_BY_NAME[case], modules) for check in way.failed})
        for case, _ in starts
    }
    found = mutation.fate(mutant, starts)
    assert found.killed_by == {case: names for case, names in alone.items() if names}
    assert found.tried == [case for case, _ in starts]


@pytest.mark.parametrize("case", ["pool.take", "waiting.examine_one", "allocation._drafts_of", "formulas.least"])
def test_a_mutant_concerns_the_paths_that_come_to_its_line_and_no_others(case: str) -> None:
    ran: dict[tuple[str, int], set[tuple[str, ...]]] = {}
    met: set[tuple[str, int]] = set()
    modules = sources.load(executed=lambda module, line: met.add((module, line)))
    met.clear()
    for way in ways(mutation.CASE_BY_NAME[case], modules):
        for line in met:
            ran.setdefault(line, set()).add(way.decisions)
        met.clear()
    reached = prove_case(mutation.CASE_BY_NAME[case]).reached
    on_paths = {line: prefixes for line, prefixes in reached.items() if line in ran}
    assert on_paths.keys() == ran.keys()
    for line, prefixes in on_paths.items():
        again = ways(mutation.CASE_BY_NAME[case], modules, verdicts_only=True, prefixes=prefixes)
        assert {way.decisions for way in again} == ran[line], line


def test_goals_that_are_asked_together_are_each_refuted() -> None:
    with running(Path(verdicts_only=True)) as path:
        x = path.integer("x")
        path.check_all({"above": x < 1, "true": x * x >= 0, "below": x > -1, "either": z3.Or(x < 1, x > -1)})
    assert {(check.name, check.verdict) for check in path.checks} == {("above", "refuted"), ("below", "refuted")}
