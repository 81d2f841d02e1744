"""The commands: what they print, what they leave behind, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from conformance import trace
from conformance.adapters.reference import InspectedReference
from conformance.cli import main
from conformance.lockstep import Failure, Judge, Level
from conformance.pages import ROOT
from conformance.protocol import load
from conformance.record import save, spec_plans
from conformance.replay import replay
from conformance.walk import FailedRun, Tally, walk
from spec.events import StepEvent
from spec.laws import LAWS
from spec.vocabulary import PROFILES, Config, StepPlan

OK, VIOLATION, BAD_INPUT = 0, 1, 2
TRACES = sorted((ROOT / "conformance" / "traces" / "golden").glob("*.jsonl"))
ROWS = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:17:{second:02}.9799600,{1000 + 300 * second % 1700},{100 + second}\n" for second in range(60)
)


class OverBudget(InspectedReference):
    """Claims one token more than it was allowed, once four requests run."""

    def schedule(self) -> StepPlan:
        plan = super().schedule()
        if len(self.running) < 4 or not plan.grants:
            return plan
        return plan._replace(grants=(*plan.grants[:-1], plan.grants[-1]._replace(tokens=10_000)))


class NoSpeculation(InspectedReference):
    """Declares nothing."""


def over_budget(config: Config) -> OverBudget:
    return OverBudget(config)


class SpeaksInRiddles(InspectedReference):
    """Fails with a text that is no text."""

    def schedule(self) -> StepPlan:
        if len(self.running) > 1:
            raise RuntimeError("\ud800\x1b[31m [bold]no[/]")
        return super().schedule()


def riddles(config: Config) -> SpeaksInRiddles:
    return SpeaksInRiddles(config)


def no_speculation(config: Config) -> NoSpeculation:
    return NoSpeculation(config)


def no_scheduler(config: Config) -> None:
    return None


def schedspec(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), "no traceback of ours"
    assert "Traceback" not in result.output
    return result


def refusal(*arguments: object) -> str:
    """The one line on standard error with which an input is refused."""
    result = schedspec(*arguments)
    assert result.exit_code == BAD_INPUT
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("schedspec: ")
    return line.removeprefix("schedspec: ")


def rows(tmp_path: Path, text: str = ROWS) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return path


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [("walk",), ("run", "--workload", "rows.csv"), ("replay", "trace.jsonl")])
def test_unknown_names_are_refused(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows(tmp_path)
    (tmp_path / "trace.jsonl").write_bytes(TRACES[0].read_bytes())
    assert refusal(*command, "--impl", "nobody").startswith("--impl nobody: not one of reference, vllm")
    assert refusal(*command, "--impl", "no.such:thing") == (
        "--impl no.such:thing: ModuleNotFoundError: No module named 'no'"
    )
    assert refusal(*command, "--profile", "vllm-9") == "--profile vllm-9: not one of vllm-0.8.5"
    assert refusal(*command, "--class", "perfect") == "--class perfect: not one of lawful, equivalent, identical"


def test_an_adapter_beside_the_caller_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_port_that_fails.py").write_text("raise RuntimeError('no licence')")
    assert refusal("walk", "--impl", "my_port_that_fails:make") == (
        "--impl my_port_that_fails:make: RuntimeError: no licence"
    )


def test_a_bad_trace_is_refused_before_anything_runs(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    first, *others = TRACES[0].read_text().splitlines()
    bad.write_text("\n".join([first, others[0].replace('"max_tokens":', '"max_tokens":0'), *others[1:]]))
    assert refusal("replay", TRACES[0], bad).startswith(f"{bad}: line 2: ")
    assert refusal("replay", tmp_path / "none") == f"{tmp_path / 'none'}: No such file or directory"


def test_a_bad_workload_is_refused(tmp_path: Path) -> None:
    path = rows(tmp_path, ROWS + "2023-11-16 18:19:00,12,0\n")
    assert refusal("run", "--workload", path) == f"{path}: line 62: GeneratedTokens: Expected int >= 1"
    assert refusal("run", "--workload", rows(tmp_path), "--format", "xml").startswith("format 'xml' is unknown")
    assert refusal("run", "--workload", rows(tmp_path), "--scale", 0) == "scale: must be at least 1, not 0"
    assert refusal("run", "--workload", rows(tmp_path), "--blocks", 1).startswith("num_blocks: must be at least 2")
    assert refusal("run", "--workload", rows(tmp_path), "--speed", "nan").startswith("speed: must be more than 0")


def test_a_failure_that_cannot_be_written_is_still_a_failure(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    result = schedspec("walk", "--impl", f"{__name__}:over_budget", "--steps", 5000, "--failures", tmp_path / "taken")
    assert result.exit_code == VIOLATION
    assert "FAILED BUDGET" in result.stdout
    assert result.stderr.startswith(f"schedspec: {tmp_path / 'taken'}")


# --- replay --------------------------------------------------------------------------------------


def test_replay_of_golden_traces() -> None:
    result = schedspec("replay", *TRACES)
    assert result.exit_code == OK
    assert result.stdout.count("\nok ") + 1 == len(TRACES)


def test_unsupported_is_not_passed() -> None:
    speculative = next(path for path in TRACES if '"num_speculative_tokens"' in path.read_text())
    result = schedspec("replay", speculative, TRACES[-1], "--impl", f"{__name__}:no_speculation")
    assert result.exit_code == OK
    assert f"unsupported {speculative}: {speculative.stem} needs" in result.stdout
    result = schedspec("replay", speculative, "--impl", f"{__name__}:no_speculation")
    assert result.exit_code == BAD_INPUT
    assert "supports none of these traces" in result.stderr


# --- run -----------------------------------------------------------------------------------------


def test_run_tells_what_happened(tmp_path: Path) -> None:
    result = schedspec("run", "--workload", rows(tmp_path), "--limit", 50, "--model-len", 1024, "--blocks", 65)
    assert result.exit_code == OK
    for words in ("under test: reference, profile vllm-0.8.5, class identical", "50   requests", "preemptions"):
        assert words in result.stdout


def test_a_failing_run_tells_law_sides_step_and_rows(tmp_path: Path) -> None:
    result = schedspec("run", "--workload", rows(tmp_path), "--impl", f"{__name__}:over_budget")
    assert result.exit_code == VIOLATION
    for words in (
        "FAILED BUDGET in step",
        "over budget: ",
        "  spec:",
        "  implementation:",
        "rows of the trace:\n  line ",
        "before that",
    ):
        assert words in result.stdout


def test_a_broken_adapter_is_told_from_a_broken_scheduler(tmp_path: Path) -> None:
    for command in (("walk",), ("run", "--workload", rows(tmp_path))):
        result = schedspec(*command, "--impl", f"{__name__}:no_scheduler")
        assert result.exit_code == VIOLATION
        assert "the adapter is wrong: ANSWER (no scheduler)" in result.stdout


# --- walk ----------------------------------------------------------------------------------------


def test_walk() -> None:
    result = schedspec("walk", "--steps", 500, "--seed", "test")
    assert result.exit_code == OK
    assert result.stdout.splitlines()[-1].endswith("events")


def test_a_failing_walk_leaves_a_trace_that_fails_alike(tmp_path: Path) -> None:
    arguments = ("walk", "--impl", f"{__name__}:over_budget", "--steps", 5000, "--failures", tmp_path)
    result = schedspec(*arguments)
    assert result.exit_code == VIOLATION
    (path,) = tmp_path.iterdir()
    assert result.stdout.splitlines()[-1] == f"written to {path}"
    assert path.name.startswith("budget-over-budget-")
    written = path.read_bytes()
    assert schedspec(*arguments).exit_code == VIOLATION
    assert [path] == list(tmp_path.iterdir())
    assert path.read_bytes() == written

    replayed = schedspec("replay", path, "--impl", f"{__name__}:over_budget")
    assert replayed.exit_code == VIOLATION
    assert f"FAILED BUDGET in {path}, event " in replayed.stdout
    assert schedspec("replay", path).exit_code == OK


def test_whatever_a_message_holds_is_told_and_written(tmp_path: Path) -> None:
    result = schedspec("walk", "--impl", f"{__name__}:riddles", "--steps", 5000, "--failures", tmp_path)
    assert result.exit_code == VIOLATION
    assert "\\ud800" in result.stdout
    assert "[bold]no[/]" in result.stdout
    (path,) = tmp_path.iterdir()
    assert "\\ud800" in trace.read(path).header.note


def test_a_saved_failure_is_short_and_says_what_is_lawful(tmp_path: Path) -> None:
    implementation, judge = load(f"{__name__}:over_budget"), Judge(PROFILES["vllm-0.8.5"], Level.LAWFUL)
    with pytest.raises(FailedRun) as failed:
        walk(implementation, judge, "0", 5000, Tally())
    found = trace.read(save(implementation, judge, failed.value, tmp_path))
    assert found.header.level is Level.LAWFUL
    assert found.header.note.startswith(f"{implementation.name}: BUDGET (over budget): ")
    assert len(found.events) <= 6 < len(failed.value.events)
    assert all(record is not None for record in found.expected[-1:])
    plans = spec_plans(judge.profile, found.header.config, found.events)
    assert len(plans) == sum(isinstance(event, StepEvent) for event in found.events)
    with pytest.raises(Failure, match="BUDGET"):
        replay(implementation, judge, found)


# --- pages ---------------------------------------------------------------------------------------


def test_schema_is_the_published_one() -> None:
    result = schedspec("schema")
    assert result.exit_code == OK
    assert result.stdout == (ROOT / "conformance" / "schema" / "trace.schema.json").read_text()
    assert json.loads(result.stdout)["$defs"].keys() >= {"Header", "AddRecord", "StepRecord"}


def test_laws_are_all_listed() -> None:
    result = schedspec("laws")
    assert result.exit_code == OK
    for law in LAWS:
        assert law.id in result.stdout
