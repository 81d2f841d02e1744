"""Known deviations: each one that is listed must show in its trace."""

from __future__ import annotations

import pytest

from conformance.deviations import TRACES
from conformance.lockstep import Failure, Judge
from conformance.protocol import Implementation
from conformance.replay import replay
from conformance.trace import read


def test_every_listed_deviation_shows(implementation: Implementation, judge: Judge) -> None:
    if not judge.known.entries:
        pytest.skip(f"no deviation of {implementation.name} is listed")
    problems = []
    for deviation in judge.known.entries:
        try:
            session = replay(implementation, judge, read(TRACES / f"{deviation.trace}.jsonl"))
        except Failure as failure:
            problems.append(f"{deviation.trace} shows something else: {failure}")
            continue
        if not session.shown[deviation.id]:
            problems.append(f"{deviation.id} is listed, but {deviation.trace} does not show it")
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
