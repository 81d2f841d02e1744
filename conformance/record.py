"""A failing run, made short and written down as a trace that anybody can replay."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from conformance import trace
from conformance.lockstep import Ended, Failure, Judge, Session
from conformance.protocol import CAPABILITIES, Implementation
from conformance.shrink import failure_of, shrink
from conformance.walk import FailedRun
from spec.events import Event, StepEvent
from spec.laws import Violation
from spec.observer import Inspection
from spec.scheduler import Oracle
from spec.vocabulary import PROFILES, Config, Profile, StepPlan

LONGEST_SLUG = 60


def save(implementation: Implementation, judge: Judge, failed: FailedRun, directory: Path) -> Path:
    """The file in `directory` with the shortest run found that fails in the same way.

    Its id is made of law, signature and content, so that the same run always has the same name.  Each step says
    what the spec plans, as far as the spec gets alone.  Raises OSError where it cannot be written.
    """
    events = shrink(implementation, judge, failed.config, failed.events, failed.failure)
    violation = (failure_of(implementation, judge, failed.config, events) or failed.failure).violation
    header = trace.Header(trace.SCHEMA_VERSION, "", judge.profile.name, failed.config, judge.level)
    digest = hashlib.sha256(trace.encode(header, events)).hexdigest()[:8]
    named = trace.Header(
        schema=header.schema,
        id=f"{_slug(violation)}-{digest}",
        profile=header.profile,
        config=header.config,
        level=header.level,
        note=f"{implementation.name}: {violation}".encode(errors="backslashreplace").decode(),
    )
    path = directory / f"{named.id}.jsonl"
    trace.write(path, named, events, spec_plans(judge.profile, failed.config, events))
    return path


def spec_plans(profile: Profile, config: Config, events: Sequence[Event]) -> list[StepPlan | None]:
    """What the lawful spec plans in each step of a run, up to where the run asks for what is refused."""
    lawful = PROFILES[profile.name]
    alone = Implementation("spec", lambda config: SpecAlone(config, lawful), frozenset(CAPABILITIES) - {"inspect"})
    plans: list[StepPlan | None] = []
    try:
        session = Session(alone, config, Judge(lawful))
        for event in events:
            session.apply(event)
            if isinstance(event, StepEvent):
                plans.append(session.last_plan)
    except (Failure, Ended):
        pass
    return plans


class SpecAlone(Oracle):
    """The spec as a scheduler under test that shows nothing of its inside."""

    def inspect(self, blocks: object = None) -> Inspection | None:
        return None


def _slug(violation: Violation) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", f"{violation.law} {violation.signature}".lower())
    return words[:LONGEST_SLUG].strip("-")
