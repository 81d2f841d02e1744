"""`schedspec prove`: its exit codes and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from conformance import proof_view
from conformance.cli import main
from spec.proofs.proving import Failure, Proved


def test_one_action_is_proved_and_told_in_full(tmp_path: Path) -> None:
    told = tmp_path / "all.json"
    result = CliRunner().invoke(main, ["prove", "--only", "formulas.least", "--json", str(told)])
    assert result.exit_code == 0, result.output
    assert "LENGTH" in result.output
    rows = json.loads(told.read_text())["obligations"]
    assert [(row["case"], row["verdict"], row["theorem"]) for row in rows] == [("formulas.least", "proved", "LENGTH")]


def test_a_name_that_is_none_is_bad_input() -> None:
    result = CliRunner().invoke(main, ["prove", "--only", "nothing-of-that-name"])
    assert result.exit_code == 2


def test_a_failure_tells_action_path_and_values_and_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = Failure("pool.take", "COUNT: broken", "take: ok", "refuted", {"free size": ("2", "1")})
    report = proof_view.Report([Proved("pool.take", failures=[failure])], [], [], {})
    assert not proof_view.show(Console(width=200), report)
    shown = capsys.readouterr().out
    assert "REFUTED pool.take: COUNT: broken" in shown
    assert "take: ok" in shown
    assert "free size: 2 -> 1" in shown
    monkeypatch.setattr(proof_view, "run", lambda *_: report)
    assert CliRunner().invoke(main, ["prove", "--only", "pool.take"]).exit_code == 1
