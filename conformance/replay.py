"""Replays a trace: the spec against what the trace expects, and the implementation against the spec."""

from __future__ import annotations

from conformance.lockstep import Ended, Failure, Judge, Session
from conformance.protocol import Implementation, needs
from conformance.trace import StepRecord, Trace, step_record
from spec.events import Add, Reset, StepEvent
from spec.laws import Violation


class Unsupported(Exception):
    """The trace needs what the implementation does not declare; the text names it."""


def replay(implementation: Implementation, judge: Judge, trace: Trace) -> Session:
    """The session after the last event, or after a known deviation that ended it.

    Raises Failure, and Unsupported before anything runs.
    """
    if missing := needed(trace) - implementation.capabilities:
        raise Unsupported(f"{trace.header.id} needs {', '.join(sorted(missing))}")
    session = Session(implementation, trace.header.config, judge)
    try:
        for event, expected in zip(trace.events, trace.expected, strict=True):
            session.apply(event)
            if isinstance(event, StepEvent) and expected is not None and session.last_spec_plan is not None:
                _compare_with_trace(session, expected)
    except Ended:
        pass
    return session


def needed(trace: Trace) -> frozenset[str]:
    """The capabilities that a trace asks for."""
    wanted = set(needs(trace.header.config))
    for event in trace.events:
        if isinstance(event, Add):
            wanted |= needs(trace.header.config, event.request)
        elif isinstance(event, Reset):
            wanted.add("reset")
    return frozenset(wanted)


def _compare_with_trace(session: Session, expected: StepRecord) -> None:
    assert session.last_spec_plan is not None
    if session.quirks:
        return  # the trace tells what is lawful
    found = step_record(session.last_spec_plan)
    if found != expected:
        message = f"step {session.steps}: the spec plans {found}, the trace expects {expected}"
        raise Failure(Violation("TRACE", "spec", message), len(session.events), session.sides())
