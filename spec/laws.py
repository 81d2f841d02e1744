"""The laws: what every paged, continuously batching scheduler owes, whatever its policy.

Each law is one sentence with a stable id (add, never renumber) and one check for each moment at which it can
be seen broken: before a plan is followed, after it was, when a result is delivered, when a request is
added, and when the implementation shows its inside.  The checks are in `breaches`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from spec import breaches
from spec.breaches import Finding
from spec.observer import Inspection, Observer, ResultSeen, StepSeen
from spec.vocabulary import Request, StepPlan, StepResult


class Violation(NamedTuple):
    """A law that was broken: where to look it up, which kind of breach, and what exactly was seen."""

    law: str
    signature: str
    message: str

    def __str__(self) -> str:
        return f"{self.law} ({self.signature}): {self.message}"


@dataclass(frozen=True)
class Law:
    """One law and its checks; a moment without a check is one at which the law is not at stake."""

    id: str
    sentence: str
    on_add: Callable[[Observer, Request], Iterator[Finding]] | None = None
    on_plan: Callable[[Observer, StepPlan], Iterator[Finding]] | None = None
    on_step: Callable[[Observer, StepSeen], Iterator[Finding]] | None = None
    on_answer: Callable[[Observer, StepSeen, StepResult], Iterator[Finding]] | None = None
    on_result: Callable[[Observer, ResultSeen], Iterator[Finding]] | None = None
    on_inspection: Callable[[Observer, Inspection], Iterator[Finding]] | None = None


LAWS: tuple[Law, ...] = (
    Law(
        "ANSWER",
        "Every legal call is answered: by a well-formed value, in bounded time, its input unchanged.",
    ),
    Law(
        "BUDGET",
        "A step's tokens sum to at most the budget, its encoder tokens to at most theirs; every entry is at least 1.",
        on_step=breaches.budget,
    ),
    Law("SEATS", "At most max_num_seqs requests run.", on_step=breaches.seats),
    Law(
        "LENGTH",
        "No position at or beyond max_model_len is computed; no table is longer than its maximum.",
        on_step=breaches.length,
    ),
    Law(
        "POOL",
        "Blocks held never exceed the pool; ids are in range; the reserved block is never handed out.",
        on_step=breaches.pool,
    ),
    Law(
        "COUNT",
        "A block's references equal its occurrences in live tables; free and held blocks partition the pool.",
        on_step=breaches.count_step,
        on_inspection=breaches.count_inspection,
    ),
    Law(
        "ATOMIC",
        "What a plan does not say does not change: a refused allocation leaves tables and counters as they were.",
        on_inspection=breaches.atomic,
    ),
    Law(
        "COVER",
        "Every scheduled position, and the lookahead behind it, has a slot in the request's table.",
        on_step=breaches.cover,
    ),
    Law(
        "CONTIGUOUS",
        "A request's tokens of a step begin exactly where its computed tokens end.",
        on_step=breaches.contiguous,
    ),
    Law("WRITE", "A step never writes a slot that another live request relies on.", on_step=breaches.write),
    Law(
        "CONTENT",
        "Every slot that a step reads holds the KV of that request's own prefix, written before or in this step.",
        on_step=breaches.content,
    ),
    Law(
        "KEY",
        "A published prefix key names the content that the block holds once the steps in flight are done.",
        on_inspection=breaches.key,
    ),
    Law(
        "LAST",
        "Something known is computed for each request that is scheduled, and nothing unknown.",
        on_step=breaches.last,
    ),
    Law(
        "PREEMPTED",
        "A request preempted in a step has no tokens, blocks or drafts in its plan, and nothing computed.",
        on_plan=breaches.preempted,
    ),
    Law(
        "STATE",
        "Only legal transitions; each live request is in exactly one queue, ids are unique.",
        on_add=breaches.state_add,
        on_plan=breaches.state_plan,
        on_inspection=breaches.state_inspection,
    ),
    Law(
        "ORDER",
        "First come, first served: admission order is never inverted except by the documented skips.",
        on_step=breaches.order,
    ),
    Law(
        "CAPS",
        "Adapters of all running requests and encoder space stay within their caps; only what is cached is freed.",
        on_step=breaches.caps_step,
        on_inspection=breaches.caps_inspection,
    ),
    Law(
        "EMBED",
        "An encoder item that the tokens of a step overlap is cached, or computed in this step.",
        on_step=breaches.embed,
    ),
    Law(
        "WHOLE",
        "With chunked multimodal input off, no step ends inside an item that it began.",
        on_step=breaches.whole,
    ),
    Law(
        "OUTPUT",
        "Each sampled token is delivered exactly once, to its own request, up to the one that ends it.",
        on_answer=breaches.output_answer,
        on_result=breaches.output,
    ),
    Law(
        "FINISH",
        "A stop token ends a request as stop, a cap as length; each id finishes exactly once; nothing follows.",
        on_step=breaches.finish_step,
        on_answer=breaches.finish_answer,
        on_result=breaches.finish,
    ),
    Law(
        "IDLE",
        "A request that is gone leaves nothing behind; with no live request every block is free.",
        on_inspection=breaches.idle,
    ),
    Law(
        "PROGRESS",
        "A step with runnable work schedules at least one token; a request that can never fit is refused, not retried.",
        on_add=breaches.progress_add,
        on_step=breaches.progress,
    ),
    Law(
        "STARVE",
        "The first in line computes something new within a bounded number of steps.",
        on_step=breaches.starve,
    ),
)
"""Every law, in the order in which a breach is reported."""

LAW_BY_ID = {law.id: law for law in LAWS}


def check_add(o: Observer, request: Request) -> list[Violation]:
    """What is wrong with having accepted `request`; asked before the observer adds it."""
    return [Violation(i, *finding) for i, check in _ON_ADD for finding in check(o, request)]


def check_plan(o: Observer, plan: StepPlan) -> list[Violation]:
    """What makes a plan impossible to follow; asked before the observer applies it."""
    return [Violation(i, *finding) for i, check in _ON_PLAN for finding in check(o, plan)]


def check_step(o: Observer, step: StepSeen) -> list[Violation]:
    """What is wrong with a plan that was followed."""
    return [Violation(i, *finding) for i, check in _ON_STEP for finding in check(o, step)]


def check_answer(o: Observer, step: StepSeen, result: StepResult) -> list[Violation]:
    """What makes a result impossible to follow; asked before the observer settles it."""
    return [Violation(i, *finding) for i, check in _ON_ANSWER for finding in check(o, step, result)]


def check_result(o: Observer, seen: ResultSeen) -> list[Violation]:
    """What is wrong with a result that was followed."""
    return [Violation(i, *finding) for i, check in _ON_RESULT for finding in check(o, seen)]


def check_inspection(o: Observer, seen: Inspection) -> list[Violation]:
    """What is wrong inside, between two calls."""
    return [Violation(i, *finding) for i, check in _ON_INSPECTION for finding in check(o, seen)]


_ON_ADD = [(law.id, law.on_add) for law in LAWS if law.on_add]
_ON_PLAN = [(law.id, law.on_plan) for law in LAWS if law.on_plan]
_ON_STEP = [(law.id, law.on_step) for law in LAWS if law.on_step]
_ON_ANSWER = [(law.id, law.on_answer) for law in LAWS if law.on_answer]
_ON_RESULT = [(law.id, law.on_result) for law in LAWS if law.on_result]
_ON_INSPECTION = [(law.id, law.on_inspection) for law in LAWS if law.on_inspection]
