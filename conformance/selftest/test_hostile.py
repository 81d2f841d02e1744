"""Whatever an adapter does, a session gives a verdict: no hang, no traceback of ours."""

from __future__ import annotations

import signal

import pytest

from conformance.adapters.reference import IMPLEMENTATION
from conformance.deviations import NONE
from conformance.lockstep import Failure, Judge, Level, Session
from conformance.protocol import Implementation
from conformance.selftest.hostile import CONFIG, EVENTS, HOSTILE, METHODS, Hostile
from spec.vocabulary import PROFILES

JUDGE = Judge(PROFILES["vllm-0.8.5"], Level.IDENTICAL, NONE, time_limit_s=0.3)


def drive(implementation: Implementation) -> None:
    session = Session(implementation, CONFIG, JUDGE)
    for event in EVENTS:
        session.apply(event)


def test_the_honest_reference_passes() -> None:
    drive(IMPLEMENTATION)


def test_every_method_is_attacked() -> None:
    assert {name for name in METHODS if any(hostile.name.startswith(name) for hostile in HOSTILE)} == set(METHODS)
    assert len({hostile.name for hostile in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda hostile: hostile.name)
def test_a_hostile_adapter_gets_a_verdict(hostile: Hostile) -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Failure) as caught:
        drive(hostile.implementation)
    violation = caught.value.violation
    assert violation.law == hostile.law, violation
    for words in hostile.words:
        assert words in violation.message
    assert len(violation.message) < 500
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
