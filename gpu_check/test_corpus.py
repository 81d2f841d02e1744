"""The corpus on tensors: every transition of every committed scope, in one type."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import corpus
from conformance.lockstep import Judge
from conformance.protocol import Implementation
from conformance.trace import read_all
from gpu_check.runs import Setting, TensorSession
from gpu_check.test_traces import replay

FILES = sorted(corpus.DIRECTORY.glob("*.jsonl"))


@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_corpus(
    path: Path, implementation: Implementation, judge: Judge, setting: Setting, sessions: list[TensorSession]
) -> None:
    for trace in read_all(path):
        sessions.append(replay(trace, implementation, judge, setting))
