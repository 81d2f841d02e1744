"""The committed traces: golden ones, and those of known deviations, which lawful schedulers must pass too."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.lockstep import Failure, Judge
from conformance.protocol import Implementation
from conformance.replay import Unsupported, replay
from conformance.trace import read
from conformance.walk import Tally

FOLDERS = ("golden", "deviations")
TRACES = sorted(path for name in FOLDERS for path in (Path(__file__).parent / "traces" / name).glob("*.jsonl"))


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_trace(path: Path, implementation: Implementation, judge: Judge, tally: Tally) -> None:
    trace = read(path)
    assert trace.header.id == path.stem
    try:
        session = replay(implementation, judge, trace)
    except Unsupported as unsupported:
        pytest.skip(f"unsupported: {unsupported}")
    except Failure as failure:
        pytest.fail(f"{path.name}: {failure}\n{failure.sides}", pytrace=False)
    tally.count(session)
