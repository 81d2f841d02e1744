"""Is the adapter right at all?  See `smoke`."""

from __future__ import annotations

import pytest

from conformance.lockstep import Judge
from conformance.protocol import Implementation
from conformance.smoke import first_problem


def test_one_request_from_beginning_to_end(implementation: Implementation, judge: Judge) -> None:
    problem = first_problem(implementation, judge.time_limit_s)
    if problem is not None:
        pytest.fail(f"the adapter is wrong: {problem}", pytrace=False)
