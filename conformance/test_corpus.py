"""The corpus: every transition of every committed scope, on the implementation under test.

$ pytest conformance/ -m corpus
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.corpus import DIRECTORY
from conformance.lockstep import Failure, Judge
from conformance.protocol import Implementation
from conformance.replay import Unsupported, replay
from conformance.trace import read_all
from conformance.walk import Tally

FILES = sorted(DIRECTORY.glob("*.jsonl"))


@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_corpus(path: Path, implementation: Implementation, judge: Judge, tally: Tally) -> None:
    for trace in read_all(path):
        try:
            tally.count(replay(implementation, judge, trace))
        except Unsupported as unsupported:
            pytest.skip(f"unsupported: {unsupported}")
        except Failure as failure:
            pytest.fail(f"{trace.header.id}: {failure}\n{failure.sides}", pytrace=False)
