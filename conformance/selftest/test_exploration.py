"""Exhaustive search from outside: the corpus is what a search gives, the command reports what it did and did not do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from conformance import corpus, trace
from conformance.campaign import campaign
from conformance.cli import main
from conformance.exploration import Report, Settings, chosen
from conformance.lockstep import Judge
from conformance.protocol import load
from conformance.replay import replay
from spec.explore.scopes import COMMITTED, DROPPED, SCOPES
from spec.explore.search import explore
from spec.explore.tests.seeded import BUGS
from spec.vocabulary import PROFILES

MOST_BYTES = 1_000_000

SECONDS_UNTIL_CTRL_C = 4.0
"""By then the search has begun; without renaming it takes much longer."""

SCOPES_WITHOUT_END = ["again-4x5x2", "again-4x6x2", "again-4x5x3", "again-4x6x3"]
"""Large enough without renaming."""


def schedspec(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


# --- the corpus ----------------------------------------------------------------------------------


def test_the_corpus_is_what_a_search_gives() -> None:
    committed = {path.name: path.read_bytes() for path in corpus.DIRECTORY.glob("*.jsonl")}
    assert committed == corpus.files(), "run `make docs`"
    assert sum(map(len, committed.values())) < MOST_BYTES


def test_ids_of_the_corpus_are_unique() -> None:
    ids = [each.header.id for path in corpus.DIRECTORY.glob("*.jsonl") for each in trace.read_all(path)]
    assert len(set(ids)) == len(ids) > len(COMMITTED)


def test_the_corpus_reaches_every_outcome_that_the_search_reaches() -> None:
    """So the runs really walk the edges that the graph has."""
    judge = Judge(PROFILES["vllm-0.8.5"])
    for scope in COMMITTED:
        reached = set()
        for each in trace.read_all(corpus.DIRECTORY / f"{scope.name}.jsonl"):
            reached |= set(replay(load("reference"), judge, each).reached)
        assert reached == set(explore(scope).rows)


# --- the command ---------------------------------------------------------------------------------


def test_explore_reports_what_it_reached(tmp_path: Path) -> None:
    result = schedspec("explore", "hits", "plain-2x4x*", "--report", tmp_path / "report.json")
    assert result.exit_code == 0
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["complete"]
    assert [each["name"] for each in report["searched"]] == [s.name for s in chosen(["hits", "plain-2x4x*"])]
    graph = explore(SCOPES["hits"])
    assert (report["searched"][0]["states"], report["searched"][0]["transitions"]) == (
        len(graph.values),
        graph.transitions,
    )
    assert "reset: ok" in report["never"]
    assert "outcomes never reached: " in result.stdout
    assert "laws never at stake: " in result.stdout


def test_explore_shows_how_a_dropped_premise_gets_stuck() -> None:
    result = schedspec("explore", *(dropped.scope.name for dropped in DROPPED))
    assert result.exit_code == 0
    for dropped in DROPPED:
        assert f"dropped premise, {dropped.premise}: {dropped.scope.name}\n  {dropped.kind} of " in result.stdout


def test_a_dropped_premise_that_gets_nobody_stuck_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.exploration.find_stuck", lambda graph: None)
    result = schedspec("explore", "one-block-short")
    assert result.exit_code == 1
    assert "NOBODY IS STUCK" in result.stdout


def test_a_search_that_is_not_complete_says_so() -> None:
    result = schedspec("explore", "hits", "--limit", 20)
    assert result.exit_code == 0
    assert "not complete: hits: limit of 20 states" in result.stdout
    assert "NOT every state was searched" in result.stdout


def test_an_unknown_scope_is_told_in_one_line() -> None:
    result = schedspec("explore", "no-such-scope")
    assert result.exit_code == 2
    assert result.stderr.startswith("schedspec: no scope matches 'no-such-scope'")


def test_workers_change_nothing() -> None:
    scopes = chosen(["*-3x4x2", "hits"])
    assert _told(campaign(scopes, Settings(), workers=2)) == _told(campaign(scopes, Settings()))


def _told(report: Report) -> dict[str, object]:
    """All but the clock."""
    told: dict[str, object] = msgspec.to_builtins(report)
    told["searched"] = [msgspec.structs.replace(each, seconds=0.0) for each in report.searched]
    return told


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_a_valid_partial_report(tmp_path: Path, workers: int) -> None:
    report = tmp_path / "report.json"
    command = [str(Path(sys.executable).parent / "schedspec"), "explore", *SCOPES_WITHOUT_END, "--no-renaming"]
    options = ["--workers", str(workers), "--report", str(report)]
    run = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(SECONDS_UNTIL_CTRL_C)
    os.killpg(run.pid, signal.SIGINT)
    said, _ = run.communicate(timeout=30)
    assert run.returncode == 130
    told = json.loads(report.read_text())
    assert not told["complete"]
    assert told["interrupted"]
    names = [each["name"] for each in told["searched"]]
    assert [*names, *told["not_searched"]] == SCOPES_WITHOUT_END
    assert workers <= len(names) < len(SCOPES_WITHOUT_END)
    assert all(each["stopped"] == "interrupted" and each["states"] > 1 for each in told["searched"])
    assert f"not searched: {len(told['not_searched'])} scopes, from {told['not_searched'][0]} on" in said


def test_a_breach_is_written_as_the_shortest_run_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bug = next(bug for bug in BUGS if bug.name == "oldest is preempted")
    real = getattr(bug.module, bug.function)
    with monkeypatch.context() as sabotaged:
        sabotaged.setattr(bug.module, bug.function, lambda *args: bug.wrong(real, *args))
        graph = explore(SCOPES[bug.scope])
        (found,) = campaign([SCOPES[bug.scope]], Settings(failures=tmp_path)).searched
    assert found.failed
    assert found.breach.startswith(bug.law)
    written = trace.read(Path(found.trace))
    assert graph.breach is not None
    assert len(written.events) == graph.depths[graph.breach.state] + 1 == len(found.way.split(", "))
    replay(load("reference"), Judge(PROFILES["vllm-0.8.5"]), written)
