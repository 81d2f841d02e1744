"""Long seeded walks, for volume."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.lockstep import Judge
from conformance.protocol import Implementation
from conformance.record import save
from conformance.walk import FailedRun, Tally, walk

SHARDS = range(8)
STEPS_PER_SHARD = 5_000


@pytest.mark.parametrize("shard", SHARDS)
def test_walk(shard: int, implementation: Implementation, judge: Judge, tally: Tally, failures: Path) -> None:
    try:
        walk(implementation, judge, f"test_walk {shard}", STEPS_PER_SHARD, tally)
    except FailedRun as failed:
        path = save(implementation, judge, failed, failures)
        pytest.fail(f"{failed.failure}\n{failed.failure.sides}\nwritten to {path}", pytrace=False)
