"""What cannot be used is told in one line with exit code 2, before anything is allocated; and the demonstration."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

import pytest
import torch
from typer.testing import CliRunner

from conformance.cli import main
from reference import kv_tensors
from reference.bounds import OutOfBounds
from reference.executor import Executor
from reference.model import Model
from reference.model_config import BadModel, ModelConfig
from reference.placement import check_cache_fits, place
from spec.vocabulary import Admission, Config, Grant, Request, StepPlan

NO_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--heads", "9", "--kv-heads", "4"], "heads: must be a multiple of kv_heads (kv_heads is 4), not 9"),
        (["--head-size", "7"], "head_size: must be even and at least 2, not 7"),
        (["--dtype", "int8"], "--dtype int8: not one of float64, float32, bfloat16, float16"),
        (["--device", "tpu"], "--device tpu: not one of cpu, cuda"),
        (["--attention", "flash"], "--attention flash: not one of paged, triton"),
        (["--blocks", "2000000000000"], "the cache of 2000000000000 blocks needs"),
        (["--blocks", "3"], "pool: r0 may need"),
        pytest.param(["--device", "cuda"], "finds no CUDA device", marks=NO_CUDA),
    ],
)
def test_one_line(options: Sequence[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if options[0] != "--blocks" or len(options[1]) > 3:
        monkeypatch.setattr(kv_tensors.KVTensors, "__init__", _must_not_allocate)
    result = CliRunner().invoke(main, ["generate", *options])
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def _must_not_allocate(*arguments: object) -> None:
    raise AssertionError("a cache was allocated")


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec

    def missing(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "torch" else find(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", missing)
    result = CliRunner().invoke(main, ["generate"])
    assert result.exit_code == 2
    assert result.stderr.strip() == "schedspec: torch is not installed: pip install 'schedspec[torch]'"


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (["--dtype", "int4"], "--dtype int4: not one of"),
        (["--attention", "flash"], "--attention flash: not one of"),
        (["--impl", "nobody"], "--impl nobody: not one of"),
        pytest.param(["--device", "cuda"], "finds no CUDA device", marks=NO_CUDA),
    ],
)
def test_options_of_the_suite(option: Sequence[str], said: str) -> None:
    command = [sys.executable, "-m", "pytest", "gpu_check/test_bad_input.py", *option]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 2
    assert said in result.stdout + result.stderr


# --- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "tokens", "said"),
    [
        ((1,), 9, "a: position 4: table of 1 blocks is too short, it ends at 9"),
        ((1, 9, 2), 9, "a: position 4: block 9 is outside the pool of 9"),
        ((1, 0, 2), 9, "a: position 4: block 0 is reserved"),
        ((1, 2, 3), 10, "a: position 9: no token is known there"),
    ],
)
def test_bounds_name_request_position_and_block(blocks: tuple[int, ...], tokens: int, said: str) -> None:
    executor = _executor()
    executor.add(Request("a", tuple(range(9)), max_tokens=3))
    with pytest.raises(OutOfBounds, match=said):
        executor.execute(StepPlan((Grant("a", Admission.NEW, 0, tokens, blocks),)))


def test_a_block_that_was_never_handed_out() -> None:
    executor = _executor()
    executor.add(Request("a", tuple(range(9)), max_tokens=3))
    with pytest.raises(OutOfBounds, match="a: position 0: block 5 was never handed out by a plan"):
        executor.execute(StepPlan((Grant("a", Admission.NEW, 4, 5, (5, 2, 3)),)))


def test_nothing_is_written_where_a_bound_is_broken() -> None:
    """The sound row of the same step included."""
    executor = _executor()
    executor.add(Request("a", (1, 2), max_tokens=3))
    executor.add(Request("b", tuple(range(9)), max_tokens=3))
    plan = StepPlan((Grant("a", Admission.NEW, 0, 2, (1,)), Grant("b", Admission.NEW, 0, 9, (2,))))
    with pytest.raises(OutOfBounds, match="b: position 4"):
        executor.execute(plan)
    assert torch.isnan(executor.cache.keys).all()


def _executor() -> Executor:
    from reference.attention import load

    config = Config(num_blocks=9, block_size=4, max_num_batched_tokens=16, max_num_seqs=2, max_model_len=16)
    return Executor(Model(ModelConfig(), place("cpu", "float32")), config, load("paged"))


def test_a_cache_larger_than_memory() -> None:
    config = Config(2**40, 16, 16, 2, 16)
    with pytest.raises(
        BadModel, match=r"the cache of 1099511627776 blocks needs [\d.]+ GiB on cpu, [\d.]+ GiB are free"
    ):
        check_cache_fits(ModelConfig(), config, "float32", place("cpu", "float32"))


# --- the demonstration -----------------------------------------------------------------------------


def test_the_demonstration_prints_steps_budget_and_preemptions() -> None:
    result = CliRunner().invoke(main, ["generate", "--blocks", "16", "--requests", "6", "--drafts", "2"])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[0].startswith("step 1: ")
    assert " of 32 tokens" in lines[0]
    assert any("preempted r" in line for line in lines)
    assert sum(line.startswith("r") for line in lines) == 6
    assert "preemptions" in lines[-1]
