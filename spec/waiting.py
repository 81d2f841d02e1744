"""The waiting pass: admissions from the front of the queue, past those that may be skipped."""

from __future__ import annotations

from spec.allocation import ALLOCATE, Attempt, Step, choose_items, grant
from spec.formulas import admission_demand, below_threshold, blocks_needed
from spec.guards import Conjunct, Guard, Refusal
from spec.pool import evictable
from spec.prefix import longest_hit
from spec.state import Live, State
from spec.vocabulary import Admission, Status

ADMISSIONS: Guard[tuple[State, Step]] = Guard(
    "admissions",
    (
        Conjunct("preempted", "ADM-1", lambda v: not v[1].preempted, lambda v: "a request was preempted in this step"),
        Conjunct("queue empty", "ADM-2", lambda v: bool(v[0].waiting), lambda v: "nobody waits"),
        Conjunct("budget", "ADM-2", lambda v: v[1].budget > 0, lambda v: "budget: no token left"),
        Conjunct(
            "seats",
            "ADM-2",
            lambda v: len(v[0].running) < v[0].config.max_num_seqs,
            lambda v: f"seats: {len(v[0].running)} of {v[0].config.max_num_seqs} taken",
        ),
    ),
)


EXAMINE: Guard[tuple[State, Step, Live]] = Guard(
    "examine",
    (
        Conjunct(
            "grammar",
            "ADM-3.1",
            lambda v: v[2].status is not Status.WAITING_FOR_GRAMMAR or v[2].grammar_ready,
            lambda v: "grammar: not compiled yet",
        ),
        Conjunct(
            "adapters",
            "ADM-3.3",
            lambda v: (
                not v[2].request.lora_id
                or v[2].request.lora_id in v[1].adapters
                or len(v[1].adapters) < v[0].config.max_loras
            ),
            lambda v: f"adapters: {sorted(v[1].adapters)} fill the cap of {v[0].config.max_loras}",
        ),
    ),
)
"""A waiting request that fails here is set aside and does not hold up those behind it (ADM-3)."""


def examine_one(state: State, step: Step) -> bool:
    """Whether the front of the queue can be tried; if not, it is set aside for this step (ADM-3, ST-3)."""
    live = state.waiting[0]
    refusal = EXAMINE.refusal((state, step, live))
    if refusal is None:
        if live.status is Status.WAITING_FOR_GRAMMAR:
            live.status = Status.WAITING
            state.log.append(("examine", "grammar ready"))
        return True
    step.skipped.append(state.waiting.popleft())
    state.log.append(("examine", refusal.name))
    return False


def admit_one(state: State, step: Step) -> Refusal | None:
    """Admits the front of the queue (ADM-10 to ADM-13).

    Or tells why nobody is admitted any more in this step: the pool, or an encoder item (ADM-3.6).
    """
    live = state.waiting[0]
    attempt = demand_of_waiting(state, step, live)
    refusal = ALLOCATE.refusal(attempt)
    if refusal is not None:
        fits_without = refusal.name == "pool" and attempt.needed <= len(state.pool.free)
        state.log.append(("admit", "pool, but for its free hits" if fits_without else refusal.name))
        return refusal
    state.waiting.popleft()
    state.running.append(live)
    admission = Admission.RESUMED if live.status is Status.PREEMPTED else Admission.NEW
    live.status = Status.RUNNING
    live.computed = attempt.computed
    if live.request.lora_id:
        step.adapters.add(live.request.lora_id)
    grant(attempt, admission)
    return None


def demand_of_waiting(state: State, step: Step, live: Live) -> Attempt:
    """What a waiting request asks for behind its hits and external tokens (ADM-4 to ADM-8)."""
    config = state.config
    hits = longest_hit(state, live)
    hit_tokens = len(hits) * config.block_size
    external = max(live.request.external_tokens - hit_tokens, 0)
    computed = hit_tokens + external
    if live.request.external_tokens:
        state.log.append(("external", "behind the hits" if external else "all hit"))
    wanted = admission_demand(live.known, computed)
    tokens = below_threshold(wanted, config.long_prefill_token_threshold)
    if tokens < wanted:
        state.log.append(("cut admission", "threshold"))
    if step.budget < tokens:
        state.log.append(("cut admission", "budget"))
        tokens = step.budget
    attempt = Attempt(state, step, live, computed, tokens)
    attempt.hits = hits
    attempt.evictable = evictable(state.pool, hits)
    attempt.external = external
    if live.request.items:
        choose_items(attempt)
    attempt.needed = blocks_needed(computed, attempt.tokens, config.lookahead, len(hits), config.block_size)
    return attempt
