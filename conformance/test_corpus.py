"""The corpus: every transition of every committed scope, on the implementation under test.

$ pytest conformance/ -m corpus
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import corpus
from conformance.lockstep import Failure, Judge, Level
from conformance.protocol import Implementation
from conformance.replay import Unsupported
from conformance.walk import Tally

FILES = sorted(corpus.DIRECTORY.glob("*.jsonl"))


@pytest.mark.corpus
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_corpus(path: Path, implementation: Implementation, judge: Judge, tally: Tally) -> None:
    """Strict: a known deviation shows in exactly as many runs as was written down."""
    try:
        sessions, shown = corpus.run_all(implementation, judge, path)
    except Unsupported as unsupported:
        pytest.skip(f"unsupported: {unsupported}")
    except Failure as failure:
        pytest.fail(f"{path.stem}: {failure}\n{failure.sides}", pytrace=False)
    for session in sessions:
        tally.count(session)
    expected = corpus.expected(implementation.deviations)
    if expected is not None and judge.level is Level.IDENTICAL:
        assert dict(shown) == expected[path.stem]
