"""The committed traces of the suite, carried out on tensors: golden ones, deviations, and whatever joins them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import conformance
from conformance.lockstep import Ended, Judge
from conformance.protocol import Implementation
from conformance.replay import needed
from conformance.trace import Trace, read
from gpu_check.inspector import Inspector
from gpu_check.runs import Setting, TensorSession

FOLDERS = ("golden", "deviations", "museum")
TRACES = sorted(
    path for name in FOLDERS for path in (Path(conformance.__file__).parent / "traces" / name).glob("*.jsonl")
)
READS_FOREIGN_KV = "item-missing-from-key-read"
"""A known deviation behind which a run goes on, with numbers that must differ."""


def replay(trace: Trace, implementation: Implementation, judge: Judge, setting: Setting) -> TensorSession:
    """The session after the last event, or where a known deviation ended it."""
    if missing := needed(trace) - implementation.capabilities:
        pytest.skip(f"unsupported: {trace.header.id} needs {', '.join(sorted(missing))}")
    inspector = Inspector(setting.executor(trace.header.config))
    session = TensorSession(implementation, trace.header.config, judge, inspector)
    try:
        for event in trace.events:
            session.apply(event)
    except Ended:
        pass
    return session


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_trace(
    path: Path,
    dtype: str,
    implementation: Implementation,
    judge: Judge,
    setting: Setting,
    sessions: list[TensorSession],
) -> None:
    """Padding rows among those of requests, too: batches are padded to a multiple of four tokens."""
    sessions.append(replay(read(path), implementation, judge, replace(setting, dtype=dtype, pad_to=4)))


def test_a_known_read_of_foreign_kv_shows_in_the_numbers(
    implementation: Implementation, judge: Judge, setting: Setting
) -> None:
    if not any(known.id == READS_FOREIGN_KV for known in judge.known.entries):
        pytest.skip(f"{implementation.name} is not known to read foreign KV")
    path = next(path for path in TRACES if path.stem == READS_FOREIGN_KV)
    assert replay(read(path), implementation, judge, setting).confirmed[READS_FOREIGN_KV] == 1
