"""Makes a failing run short: leaves out events as long as the same violation still shows.

Events do not depend on the implementation - a request brings what it will say along - so any subsequence
of a run is a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from conformance.lockstep import Ended, Failure, Judge, Session
from conformance.protocol import Implementation
from spec.events import Event
from spec.vocabulary import Config


def failure_of(implementation: Implementation, judge: Judge, config: Config, events: Sequence[Event]) -> Failure | None:
    """The failure that these events lead to, if they do."""
    try:
        session = Session(implementation, config, judge)
        for event in events:
            session.apply(event)
    except Failure as failure:
        return failure
    except Ended:
        return None
    return None


def shrink(
    implementation: Implementation, judge: Judge, config: Config, events: Sequence[Event], failure: Failure
) -> list[Event]:
    """A run of a few events that fails in the same way: same law, same signature."""

    def still_fails(candidate: Sequence[Event]) -> bool:
        found = failure_of(implementation, judge, config, candidate)
        return found is not None and found.violation[:2] == failure.violation[:2]

    shortest = list(events[: failure.event_number])
    return _without_chunks(shortest, still_fails) if still_fails(shortest) else list(events)


def _without_chunks(events: list[Event], still_fails: Callable[[Sequence[Event]], bool]) -> list[Event]:
    size = max(len(events) // 2, 1)
    while True:
        start, shrunk = 0, False
        while start < len(events):
            candidate = events[:start] + events[start + size :]
            if still_fails(candidate):
                events, shrunk = candidate, True
            else:
                start += size
        if size == 1 and not shrunk:
            return events
        size = max(size // 2, 1)
