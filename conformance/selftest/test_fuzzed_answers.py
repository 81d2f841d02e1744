"""Well-formed nonsense: answers of the declared types with random content end in a verdict, never in a traceback."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable
from typing import Any

import pytest

from conformance.adapters.reference import InspectedReference
from conformance.lockstep import Failure, Judge, Level, Session
from conformance.protocol import CAPABILITIES, Implementation
from conformance.selftest.hostile import CONFIG, EVENTS
from spec.vocabulary import PROFILES, Admission, Finish, FinishReason, Grant

SESSIONS = 150
NUMBERS = (0, 1, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 100, 10**30, -1, -(10**20))
NAMES = ("a", "b", "nobody")


class Nonsense:
    """Replaces some fields of an answer by values of the same type."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def happens(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def number(self) -> int:
        return self._random.choice(NUMBERS)

    def name(self) -> str:
        return self._random.choice(NAMES)

    def some(self, draw: Callable[[], Any]) -> tuple[Any, ...]:
        return tuple(draw() for _ in range(self._random.randrange(4)))

    def numbers(self) -> tuple[int, ...]:
        return self.some(self.number)

    def names(self) -> tuple[str, ...]:
        return self.some(self.name)

    def grants(self, grants: tuple[Grant, ...]) -> tuple[Grant, ...]:
        changed = tuple(grant._replace(**self._fields(GRANT)) if self.happens(60) else grant for grant in grants)
        return changed + changed[:1] if self.happens(10) else changed

    def _fields(self, draws: dict[str, Callable[[Nonsense], Any]]) -> dict[str, Any]:
        return {name: draws[name](self) for name in self._random.sample(sorted(draws), self._random.randint(1, 2))}

    def change(self, answer: Any) -> Any:
        """The answer, or the answer with a field or two changed."""
        if not self.happens(40):
            return answer
        changes = self._fields(FIELDS[type(answer).__name__])
        if "grants" in changes:
            changes["grants"] = self.grants(answer.grants)
        if dataclasses.is_dataclass(answer) and not isinstance(answer, type):
            return dataclasses.replace(answer, **changes)
        return answer._replace(**changes)


GRANT: dict[str, Callable[[Nonsense], Any]] = {
    "request_id": Nonsense.name,
    "admission": lambda n: tuple(Admission)[n.number() % len(Admission)],
    "start": Nonsense.number,
    "tokens": Nonsense.number,
    "external": Nonsense.number,
    "blocks": Nonsense.numbers,
    "drafts": Nonsense.numbers,
    "items": Nonsense.numbers,
}

FIELDS: dict[str, dict[str, Callable[[Nonsense], Any]]] = {
    "StepPlan": {
        "grants": lambda n: None,
        "preempted": Nonsense.names,
        "finished": Nonsense.names,
        "freed_items": lambda n: n.some(lambda: (n.name(), n.number())),
        "common_prefix_blocks": Nonsense.number,
    },
    "StepResult": {
        "emitted": lambda n: n.some(lambda: (n.name(), n.numbers())),
        "finished": lambda n: n.some(lambda: Finish(n.name(), FinishReason.STOP, n.number())),
    },
    "Inspection": {
        "running": Nonsense.names,
        "waiting": Nonsense.names,
        "computed": lambda n: {n.name(): n.number()},
        "tables": lambda n: {n.name(): n.numbers()},
        "free_blocks": Nonsense.number,
        "refs": lambda n: {n.number(): n.number()},
        "keys": lambda n: {n.number() % CONFIG.num_blocks: n.number()},
        "free_order": Nonsense.numbers,
        "encoder_free": Nonsense.number,
        "leftovers": Nonsense.names,
    },
}


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("method", ["schedule", "commit", "inspect"])
def test_nonsense_gets_a_verdict(level: Level, method: str) -> None:
    laws = set()
    for number in range(SESSIONS):
        nonsense = Nonsense(f"{level} {method} {number}")

        def answer(self: InspectedReference, *arguments: Any, nonsense: Nonsense = nonsense) -> Any:
            return nonsense.change(getattr(InspectedReference, method)(self, *arguments))

        factory = type("NonsensicalReference", (InspectedReference,), {method: answer})
        try:
            drive(Implementation("nonsense", factory, frozenset(CAPABILITIES)), level)
        except Failure as failure:
            laws.add(failure.violation.law)
    assert len(laws) >= 2, "nonsense is to be told from the honest answer in many ways"


def drive(implementation: Implementation, level: Level) -> None:
    session = Session(implementation, CONFIG, Judge(PROFILES["vllm-0.8.5"], level, time_limit_s=5.0))
    for event in EVENTS:
        session.apply(event)
