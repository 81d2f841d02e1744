"""A long seeded walk: for volume, where the Hypothesis machine is for diversity and shrinking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from conformance.generate import Author, Seeded, drain, draw_config, draw_event
from conformance.lockstep import Ended, Failure, Judge, Session
from conformance.protocol import Implementation
from spec.events import Event, StepEvent
from spec.laws import Violation
from spec.vocabulary import Config

DRAIN_STEPS_PER_TOKEN = 4
"""A run in which nothing is added any more must end within so many steps for each token of the model length."""


@dataclass
class Tally:
    """What a number of sessions did."""

    sessions: int = 0
    steps: int = 0
    events: int = 0
    reached: Counter[tuple[str, str]] = field(default_factory=Counter)
    shown: Counter[str] = field(default_factory=Counter)

    def count(self, session: Session) -> None:
        self.sessions += 1
        self.steps += session.steps
        self.events += len(session.events)
        self.reached.update(session.reached)
        self.shown.update(session.shown)


class FailedRun(Exception):
    """A failure, with the whole run that led to it."""

    def __init__(self, failure: Failure, config: Config, events: list[Event]) -> None:
        super().__init__(str(failure))
        self.failure = failure
        self.config = config
        self.events = events


def finish(session: Session) -> None:
    """Lets everything that is live end, then one more step for the last ends; raises Failure if it never does."""
    for event in drain(session.observer):
        session.apply(event)
    bound = DRAIN_STEPS_PER_TOKEN * session.config.max_model_len * (len(session.observer.live) + 1)
    for _ in range(bound):
        if not session.observer.live:
            session.apply(StepEvent())
            return
        session.apply(StepEvent())
    stuck = Violation("STARVE", "never ends", f"{sorted(session.observer.live)} are live after {bound} steps")
    raise Failure(stuck, len(session.events), session.sides())


def walk(
    implementation: Implementation,
    judge: Judge,
    seed: str,
    steps: int,
    tally: Tally,
    progress: Callable[[int], None] = lambda steps: None,
) -> None:
    """Sessions of some 60 events each until `steps` steps were taken; raises FailedRun at the first failure."""
    draw = Seeded(seed)
    start = tally.steps
    while tally.steps - start < steps:
        config = draw_config(draw, implementation.capabilities)
        author = Author(config, implementation.capabilities)
        session = _begin(implementation, config, judge)
        try:
            for _ in range(draw.integer(5, 120)):
                session.apply(draw_event(draw, author, session.observer))
            finish(session)
        except Ended:
            pass
        except Failure as failure:
            raise FailedRun(failure, config, session.events) from failure
        finally:
            tally.count(session)
        progress(session.steps)


def _begin(implementation: Implementation, config: Config, judge: Judge) -> Session:
    try:
        return Session(implementation, config, judge)
    except Failure as failure:
        raise FailedRun(failure, config, []) from failure
