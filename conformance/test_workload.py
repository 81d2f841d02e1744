"""Request traces: a few rows of each format, and the file of `--workload`."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from conformance.arrivals import Arrival, read
from conformance.lockstep import Judge
from conformance.protocol import Implementation
from conformance.workload import FailedWorkload, Summary, Workload, drive, fit
from spec.vocabulary import Config

ROWS = 120
CONFIG = Config(
    num_blocks=65,
    block_size=16,
    max_num_batched_tokens=256,
    max_num_seqs=32,
    max_model_len=512,
    long_prefill_token_threshold=64,
)


def azure(rows: int) -> str:
    """Made up in the format of Azure's LLM inference traces."""
    dice = random.Random(1)
    lines = [
        f"2023-11-16 18:15:{i // 10:02}.{i % 10}000000,{dice.randint(1, 900)},{dice.randint(1, 300)}"
        for i in range(rows)
    ]
    return "\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines]) + "\n"


def mooncake(rows: int) -> str:
    """Made up in the format of Mooncake's traces: every prompt continues one of a few conversations."""
    dice = random.Random(2)
    lines = []
    for i in range(rows):
        talk, blocks = dice.randint(0, 5), dice.randint(1, 4)
        ids = [talk * 10 + j for j in range(blocks)]
        lines.append(
            f'{{"timestamp": {i * 100}, "input_length": {blocks * 512 - dice.randint(0, 300)},'
            f' "output_length": {dice.randint(1, 300)}, "hash_ids": {ids}}}'
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(("name", "text"), [("azure.csv", azure), ("mooncake.jsonl", mooncake)])
def test_a_few_rows(
    name: str, text: Callable[[int], str], implementation: Implementation, judge: Judge, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text(ROWS))
    summary = run(implementation, judge, fit(read(path), CONFIG))
    assert summary.requests == ROWS
    assert summary.preemptions > 0


def test_the_workload_of_this_run(
    implementation: Implementation, judge: Judge, workload_rows: Sequence[Arrival]
) -> None:
    if not workload_rows:
        pytest.skip("no --workload FILE")
    run(implementation, judge, fit(workload_rows))


def run(implementation: Implementation, judge: Judge, workload: Workload) -> Summary:
    try:
        return drive(implementation, judge, workload)
    except FailedWorkload as failed:
        rows = "\n".join(str(row) for row in failed.rows)
        pytest.fail(f"step {failed.summary.steps + 1}: {failed}\n{failed.failure.sides}\n{rows}", pytrace=False)
