"""`schedspec prove`: its exit codes, what it shows and what it writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from conformance import cli, proof_view, proofs, trace
from conformance.cli import main
from conformance.proofs import Report
from spec.proofs import counterexamples, mutation, proving, traces
from spec.proofs.counterexamples import UNCHARGED
from spec.proofs.proving import Failure, Obligation, OnPath, Proved, ToldPath

FAILURE = Failure(
    "pool.take",
    "COUNT: broken",
    "refuted",
    "take: ok",
    ("spec/pool.py:38: if block in pool.key_of: yes",),
    values={"num_blocks": ("2", "2"), "free size": ("2", "1"), "needed": ("3", "3"), "own known": ("0", "0")},
    about=("needed",),
)


def prove(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["prove", *arguments])
    return result.exit_code, result.output


def shown(report: Report, capsys: pytest.CaptureFixture[str]) -> tuple[bool, str]:
    good = proof_view.show(Console(width=200), report)
    return good, capsys.readouterr().out


# --- what is proved ------------------------------------------------------------------------------


def test_one_action_is_proved_and_told_in_full(tmp_path: Path) -> None:
    told = tmp_path / "all.json"
    code, output = prove("--only", "pool.take", "--json", str(told))
    assert code == 0, output
    assert "COUNT" in output
    whole = json.loads(told.read_text())
    rows = [row for row in whole["obligations"] if row["name"] == "COUNT: it has one reference"]
    assert [(row["case"], row["verdict"], row["theorem"], row["kills"]) for row in rows] == [
        ("pool.take", "proved", "COUNT", None)
    ]
    paths = whole["paths"]["pool.take"]
    assert [each["path"] for each in rows[0]["paths"]] == list(range(len(paths)))
    assert {each["verdict"] for each in rows[0]["paths"]} == {"proved"}
    assert rows[0]["cost"] == sum(each["cost"] for each in rows[0]["paths"])
    assert len({tuple(path["decisions"]) for path in paths}) == len(paths) > 1
    assert any("if block in pool.key_of: yes" in decision for path in paths for decision in path["decisions"])


def test_a_theorem_is_proved_by_its_obligations_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = tmp_path / "all.json"
    monkeypatch.setattr(proofs, "chosen", lambda only: proving.chosen("encoder."))  # for time: all cases otherwise
    code, output = prove("--only", "WHOLE", "--json", str(told))
    assert code == 0, output
    whole = json.loads(told.read_text())
    assert {row["theorem"] for row in whole["obligations"]} == {"WHOLE"}
    assert whole["counterexamples"] == {}
    assert "bounded: two encoder items in encoder.choose_items" in output


def test_a_name_that_is_none_is_bad_input() -> None:
    code, output = prove("--only", "nothing-of-that-name")
    assert code == 2
    assert output.splitlines() == ["schedspec: --only nothing-of-that-name: no theorem and no action of that name"]


def test_a_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    code, output = prove("--only", "formulas.least", "--json", str(tmp_path))
    assert code == 2
    assert output.splitlines() == [f"schedspec: {tmp_path}: Is a directory"]


def test_a_bar_counts_cases_then_mutants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bars: list[tuple[str, int, list[int]]] = []

    @contextmanager
    def bar(what: str, total: int) -> Iterator[object]:
        bars.append((what, total, []))
        yield bars[-1][2].append

    monkeypatch.setattr(cli, "_bar", bar)
    monkeypatch.setattr(proofs, "chosen", lambda only: proving.chosen("formulas.least"))
    monkeypatch.setattr(mutation, "mutants", lambda: [])
    monkeypatch.setattr(counterexamples, "EXPECTED", ())
    monkeypatch.setattr(traces, "RUNS", ())
    monkeypatch.setattr(proofs, "unreached", lambda proved: [])
    assert prove("--failures", str(tmp_path))[0] == 0
    assert bars == [("obligations", 1, [1]), ("mutants", 0, [])]


# --- what fails ----------------------------------------------------------------------------------


def test_a_failure_tells_action_path_and_values_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report([Proved("pool.take", failures=[FAILURE], paths=[ToldPath("take: ok", (), True)])])
    good, output = shown(report, capsys)
    assert not good
    lines = [line.strip() for line in output.splitlines()]
    at = lines.index("REFUTED COUNT in pool.take: COUNT: broken")
    assert lines[at + 1].startswith("theorem: References are occurrences")
    assert lines[at + 2].startswith("law: A block's references")
    assert lines[at + 3 : at + 11] == [
        "fails on 1 of 1 paths of the case; the first of them",
        "logs: take: ok",
        "takes: spec/pool.py:38: if block in pool.key_of: yes",
        "the obligation speaks of",
        "needed: 3",
        "besides, this changed",
        "free size: 2 -> 1",
        "where: num_blocks 2",
    ]
    assert lines[-1] == "FAILED"
    monkeypatch.setattr(proofs, "run", lambda *_: report)
    assert prove("--only", "pool.take")[0] == 1


def test_unknown_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    row = Obligation("pool.take", "COUNT: hard", "COUNT", "", [OnPath(0, "proved", 1), OnPath(1, "unknown", 9)])
    failure = Failure("pool.take", "COUNT: hard", "unknown", "", ())
    good, output = shown(Report([Proved("pool.take", [row], [failure])]), capsys)
    assert not good
    assert "1 failed" in output
    assert "UNKNOWN COUNT in pool.take: COUNT: hard" in output
    assert "did not decide" in output


def test_what_the_solver_cannot_decide_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spec.proofs.symbols.paths.RLIMIT", 1)
    proved = proving.prove_case(proving.chosen("formulas.ceil_div")[0])
    assert {failure.verdict for failure in proved.failures} == {"unknown"}
    assert {row.verdict for row in proved.obligations} == {"unknown"}


def test_a_problem_is_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    good, output = shown(Report([], problems=["mutant survives: that one"]), capsys)
    assert not good
    assert "FAILED mutant survives: that one" in output


def test_many_failures_are_told_in_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    failed = [Failure("pool.take", f"COUNT: {number}", "refuted", "", ()) for number in range(30)]
    _, output = shown(Report([Proved("pool.take", failures=failed)]), capsys)
    assert output.count("REFUTED") == 30
    assert output.count("theorem:") == proof_view.MOST_IN_FULL


def test_a_failure_with_a_run_is_written_as_a_trace_that_replays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how = next(each for each in traces.RUNS if each.expected is UNCHARGED)
    found = counterexamples.find(UNCHARGED)
    assert found is not None
    run = how.build(found)
    breach = traces.replay(run, how.broken(run.config))
    case = Proved(found.case, failures=[found])
    monkeypatch.setattr(proofs, "prove_all", lambda *_: [case])
    monkeypatch.setattr(traces, "run_of_failure", lambda failure: (run, breach))
    report = proofs.run(cli._bar, found.case, False, False, tmp_path)
    _, output = shown(report, capsys)
    (path, told), *others = report.written.values()
    assert others == []
    assert f"written to {path}: schedspec replay {path}" in output
    assert f"on the running spec: {told}" in output
    assert trace.read(path).events == run.events
    assert CliRunner().invoke(main, ["replay", str(path)]).exit_code == 0  # the rule is broken in this test only
    assert json.loads(proof_view.as_json(report))["failures"][0]["trace"] == str(path)


# --- mutants -------------------------------------------------------------------------------------


def test_obligations_that_kill_nothing_are_told_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    names = {"COUNT: kills": 1, "COUNT: survived": 1, "ATOMIC: same term stays": 0}
    rows = [Obligation("pool.take", name, "COUNT", "", [OnPath(0, "proved", cost)]) for name, cost in names.items()]
    rows.append(Obligation("policies.other", "COUNT: out of reach", "COUNT", "", [OnPath(0, "proved", 1)]))
    fate = mutation.Fate(mutation.mutants()[0], ["pool.take"], {"pool.take": ["COUNT: kills"]})
    report = Report([Proved("pool.take", rows)], fates=[fate], all_kills=True)
    assert shown(report, capsys)[1].splitlines()[-5:-1] == [
        "1 obligations kill a mutant, 3 kill none (--json):",
        f"  1 {proofs.TRIVIAL}",
        f"  1 {proofs.UNTOUCHED}",
        f"  1 {proofs.SURVIVED}",
    ]
    told = {row["name"]: (row["kills"], row["idle"]) for row in json.loads(proof_view.as_json(report))["obligations"]}
    assert told == {
        "COUNT: kills": ([fate.mutant.name], None),
        "COUNT: survived": ([], proofs.SURVIVED),
        "ATOMIC: same term stays": ([], proofs.TRIVIAL),
        "COUNT: out of reach": ([], proofs.UNTOUCHED),
    }


def test_where_not_every_case_was_tried_nobody_is_called_idle(capsys: pytest.CaptureFixture[str]) -> None:
    row = Obligation("pool.take", "COUNT: kills", "COUNT", "", [OnPath(0, "proved", 1)])
    fate = mutation.Fate(mutation.mutants()[0], ["pool.take"], {"pool.take": ["COUNT: kills"]})
    report = Report([Proved("pool.take", [row])], fates=[fate])
    assert "--json looks at every case" in shown(report, capsys)[1]
    assert json.loads(proof_view.as_json(report))["obligations"][0]["idle"] is None
