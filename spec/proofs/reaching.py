"""States that a run reaches: what is assumed of a counterexample so that events lead to it, and these events.

A proof looks at one action from any state in which the invariant holds; a run starts with nothing.  So each entry here
is a pair.  A shape adds to a case what is true of every state that a certain kind of run comes to; it names no number.
A builder makes the run from the numbers that the solver then found; every length in it is one of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import z3

from spec.events import Add, Event, StepEvent
from spec.model import Script
from spec.proofs.cases.admitting import demand_stub
from spec.proofs.cases.answering import fits_alone
from spec.proofs.cases.case import Case
from spec.proofs.proving import Failure
from spec.proofs.state.invariants import length
from spec.proofs.state.world import FLAGS, World
from spec.proofs.symbols.value import term
from spec.vocabulary import Config, Request

Term = Any


@dataclass(frozen=True)
class Run:
    """A counterexample that can be replayed.

    beside   laws that the policy of the run does not promise
    """

    name: str
    config: Config
    events: tuple[Event, ...]
    beside: tuple[str, ...] = ()


class Found:
    """The numbers of a counterexample, and the configuration that they say."""

    def __init__(self, failure: Failure) -> None:
        self._values = failure.values
        fields: dict[str, Any] = {name: self.before(name) for name in Config.__slots__ if name not in FLAGS}
        self.config = Config(**fields, **{name: failure.values[name][0] == "True" for name in FLAGS})

    def before(self, name: str) -> int:
        return int(self._values[name][0])

    def behind(self, name: str) -> int:
        return int(self._values[name][1])


def assuming(case: Case, first: Callable[[World], list[Term]], then: Callable[[World, Any], list[Term]]) -> Case:
    """A case with more assumed: of the state before the action, and of what the action answers."""

    def act(w: World) -> Any:
        w.path.assume(*first(w))
        answer = case.act(w)
        w.path.assume(*then(w, answer))
        return answer

    return replace(case, act=act)


def _plain(w: World) -> list[Term]:
    """Nobody has drafts, and `own` and `other` fit the pool."""
    return [
        term(w.config.num_speculative_tokens) == 0,
        fits_alone(w, w.own.request),
        fits_alone(w, w.other.request),
    ]


def _add(name: str, prompt: tuple[int, ...], max_tokens: int, **rest: int) -> Add:
    return Add(Request(name, prompt, max_tokens, **rest), Script())  # type: ignore[arg-type]


def _words(first: int, count: int) -> tuple[int, ...]:
    return tuple(range(first, first + count))


# --- an admission behind hits that are free, while somebody else holds the rest -------------------


def behind_free_hits(case: Case) -> Case:
    """Own has said nothing and is admitted whole; `other` is all that runs, one token short of filling its table."""

    def first(w: World) -> list[Term]:
        own, other, running = w.own, w.other, w.state.running
        prompt = length(other.request.prompt_token_ids)
        return [
            *_plain(w),
            term(w.config.enable_prefix_caching),
            term(w.config.long_prefill_token_threshold) == 0,
            term(own.request.external_tokens) == 0,
            w.block_size >= 2,
            term(own.known) == length(own.request.prompt_token_ids),
            term(w.step.budget) >= term(own.known),
            running.size == 1,
            running.there[other],
            w.granted == 1,
            w.state.pool.free.size + length(other.table) == w.num_blocks - 1,
            length(other.table) >= 1,
            term(other.known) == length(other.table) * w.block_size,
            term(other.computed) == term(other.known) - 1,
            prompt == term(other.computed),
        ]

    shaped = assuming(case, first, lambda w, answer: [])
    return replace(shaped, contracts={**case.contracts, "waiting.demand_of_waiting": _free_hits})


def _free_hits(w: World, state: Any, step: Any, live: Any) -> Any:
    a = demand_stub(w, state, step, live)
    w.path.assume(length(a.hits) == term(a.evictable), length(a.hits) >= 1)
    # True of every real pool, for hits differ; no proof needs it, but a run can only start where it holds.
    w.path.assume(term(a.evictable) <= w.state.pool.free.size)
    return a


def admission_behind_free_hits(failure: Failure) -> Run:
    """`before` leaves the hits in the free queue, `other` takes the rest of the pool, then `own` is admitted."""
    found = Found(failure)
    size, budget, known = found.config.block_size, found.config.max_num_batched_tokens, found.before("own known")
    prompt, hits = found.before("other prompt"), found.before("hits length")
    events: list[Event] = [
        _add("before", _words(100, hits * size), 1),
        StepEvent(),
        _add("other", _words(100 + known, prompt), found.before("other max_tokens")),
        *[StepEvent()] * -(-prompt // budget),
        _add("own", _words(100, known), found.before("own max_tokens")),
        StepEvent(),
    ]
    return Run("evictable-block-deduction-dropped", found.config, tuple(events))


# --- the first request of an idle engine ---------------------------------------------------------


def first_request(case: Case) -> Case:
    """It has said nothing, nothing is hit and nobody has drafts."""

    def first(w: World) -> list[Term]:
        return [
            z3.Not(term(w.config.enable_prefix_caching)),
            term(w.config.num_speculative_tokens) == 0,
            term(w.own.request.external_tokens) == 0,
            term(w.own.known) == length(w.own.request.prompt_token_ids),
            term(w.step.budget) == term(w.config.max_num_batched_tokens),
        ]

    return assuming(case, first, lambda w, answer: [])


def admission_when_idle(failure: Failure) -> Run:
    found = Found(failure)
    request = _add("own", _words(100, found.before("own known")), found.before("own max_tokens"))
    return Run("never-fits", found.config, (request, StepEvent()))


# --- a grant that is taken back in the step in which it was made ---------------------------------


def taken_back(case: Case) -> Case:
    """Own and `other` came in one step, with external tokens, and hold the whole pool; own was granted a chunk as
    long as the one before.  `other` stands at the end of its table and asks for a block: own's last one, for that is
    freed first.  So a block that own published must be left."""

    def first(w: World) -> list[Term]:
        own, other, size = w.own, w.other, w.block_size
        running = w.state.running
        return [
            *_plain(w),
            term(w.config.enable_prefix_caching),
            term(w.config.use_connector),
            running.size == 2,
            running.there[other],
            w.place == 0,
            w.state.pool.free.size == 0,
            length(own.table) + length(other.table) == w.num_blocks - 1,
            term(own.known) == length(own.request.prompt_token_ids),
            term(own.published) * size <= term(own.computed),
            term(own.computed) < (term(own.published) + 1) * size,
            length(other.table) >= 1,
            term(other.computed) == length(other.table) * size,
            term(other.known) == term(other.computed) + 1,
            length(other.request.prompt_token_ids) == term(other.computed),
            term(other.request.external_tokens) == term(other.computed) - 1,
            term(other.request.max_tokens) == 2,
        ]

    def then(w: World, entry: Any) -> list[Term]:
        start, tokens, table, size = term(entry.start), term(entry.tokens), w.before["own table size"], w.block_size
        published, now = w.start["own published"], w.before["own published"]
        return [
            tokens == term(w.config.long_prefill_token_threshold),
            tokens < term(w.config.max_num_batched_tokens),
            term(w.own.request.external_tokens) == start - tokens,
            start + tokens <= term(w.own.known),
            (table - 1) * size < start + tokens,
            now - z3.If(table == now, 1, 0) > published,
        ]

    return assuming(case, first, then)


def grant_taken_back(failure: Failure) -> Run:
    """Both come, own is granted its next chunk and loses it to `other`, then own resumes and hits what it published."""
    found = Found(failure)
    own = _add(
        "own",
        _words(100, found.before("own known")),
        found.before("own max_tokens"),
        external_tokens=found.before("own external"),
        priority=1,
    )
    other = _add(
        "other",
        _words(100 + found.before("own known"), found.before("other prompt")),
        found.before("other max_tokens"),
        external_tokens=found.before("other external"),
    )
    steps = [StepEvent()] * 3
    return Run("published-then-preempted", found.config, (own, other, *steps), ("ORDER",))


# --- more requests than the budget pays for ------------------------------------------------------


def two_alike(case: Case) -> Case:
    """Own has computed nothing and is granted its whole prompt, more than half of the budget; the pool has room for
    another one like it."""

    def first(w: World) -> list[Term]:
        own = w.own
        prompt = length(own.request.prompt_token_ids)
        return [
            *_plain(w),
            term(w.config.long_prefill_token_threshold) == 0,
            term(own.request.external_tokens) == 0,
            term(own.computed) == 0,
            term(own.known) == prompt,
            term(w.step.budget) == term(w.config.max_num_batched_tokens),
            2 * prompt > term(w.config.max_num_batched_tokens),
            term(w.config.max_num_seqs) >= 2,
            (w.num_blocks - 1) * w.block_size >= 2 * (prompt + w.block_size - 1),
        ]

    return assuming(case, first, lambda w, a: [term(a.tokens) == length(w.own.request.prompt_token_ids)])


def admission_of_two(failure: Failure) -> Run:
    found = Found(failure)
    prompt, most = found.before("own prompt"), found.before("own max_tokens")
    events = (_add("own", _words(100, prompt), most), _add("other", _words(100 + prompt, prompt), most), StepEvent())
    return Run("budget-not-charged", found.config, events)
