"""The running pass: every running request takes its tokens, the newest is preempted where blocks are short."""

from __future__ import annotations

from spec import encoder
from spec.allocation import ALLOCATE, Attempt, Step, choose_items, grant
from spec.formulas import below_threshold, blocks_needed, running_demand
from spec.guards import Conjunct, Guard
from spec.lifecycle import release_table
from spec.state import Live, State
from spec.vocabulary import Admission, Status

VISIT: Guard[tuple[State, Step]] = Guard(
    "visit",
    (
        Conjunct(
            "all visited", "RUN-1", lambda v: v[1].index < len(v[0].running), lambda v: "every request was visited"
        ),
        Conjunct("budget", "RUN-1", lambda v: v[1].budget > 0, lambda v: "budget: no token left"),
    ),
)


def visit_one_running(state: State, step: Step) -> None:
    """Gives the next running request its tokens, preempting from the tail while the pool is too small.

    If it had to preempt itself it was the tail, and nobody is left to visit (RUN-6, RUN-7).
    """
    attempt = demand_of_running(state, step, state.running[step.index])
    while (refusal := ALLOCATE.refusal(attempt)) is not None and refusal.name == "pool":
        if preempt_one(state, step) is attempt.live:
            state.log.append(("visit", "preempted itself"))
            return
    if refusal is None:
        grant(attempt, Admission.RUNNING)
    else:
        state.log.append(("visit", refusal.name))
    step.index += 1


def demand_of_running(state: State, step: Step, live: Live) -> Attempt:
    """What a running request asks for, cut by threshold, budget, model length and encoder (RUN-3, RUN-4)."""
    config = state.config
    wanted = running_demand(live.known, len(live.drafts), live.computed)
    tokens = below_threshold(wanted, config.long_prefill_token_threshold)
    if tokens < wanted:
        state.log.append(("cut running", "threshold"))
    if step.budget < tokens:
        tokens = step.budget
        state.log.append(("cut running", "budget"))
    room = config.max_model_len - live.computed
    if room < tokens:
        tokens = room
        state.log.append(("cut running", "model length"))
    attempt = Attempt(state, step, live, live.computed, tokens)
    if live.request.items:
        choose_items(attempt)
    attempt.needed = blocks_needed(live.computed, attempt.tokens, config.lookahead, len(live.table), config.block_size)
    return attempt


def preempt_one(state: State, step: Step) -> Live:
    """Sends the newest running request back to the front of the queue, to be computed again (PRE-1, PRE-3).

    It keeps its drafts: they still propose what may follow its last known token (SPEC-5).
    """
    victim = state.running.pop()
    release_table(state, victim)
    if "encoder_kept_on_preemption" not in state.profile.quirks:
        encoder.free_all(state, victim)
    victim.status = Status.PREEMPTED
    victim.computed = 0
    state.waiting.appendleft(victim)
    step.preempted.append(victim.request.request_id)
    state.log.append(("preempt", "with drafts" if victim.drafts else "ok"))
    return victim
