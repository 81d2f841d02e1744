"""Two release policies beside the spec's own, made of the spec's own actions.

Under priority, a release preempts whoever matters least, even a request that it has scheduled in the same step: it
takes the grant back and refunds its tokens.  But its blocks were published when they were scheduled, and now nobody
will write them.  The lawful variant withdraws those keys first.
"""

from __future__ import annotations

from spec.allocation import ALLOCATE, Step
from spec.lifecycle import release_table
from spec.pool import withdraw
from spec.running import VISIT, demand_of_running, visit_one_running
from spec.scheduler import close_step
from spec.state import Live, State
from spec.vocabulary import Grant, Status, StepPlan
from spec.waiting import ADMISSIONS, admit_one, examine_one


def preempt_scheduled(state: State, step: Step, victim: Live, entry: Grant) -> None:
    """Takes a grant of this step back, as if it had never been made; the keys stay."""
    state.running.remove(victim)
    step.grants.remove(entry)
    step.budget += entry.tokens
    release_table(state, victim)
    victim.status = Status.PREEMPTED
    victim.computed = 0
    state.waiting.appendleft(victim)
    step.preempted.append(victim.request.request_id)


def preempt_scheduled_lawfully(state: State, step: Step, victim: Live, entry: Grant) -> None:
    """The same, but what this step would have written is no longer hittable."""
    withdraw_from(state, victim, entry.start // state.config.block_size)
    preempt_scheduled(state, step, victim, entry)


def withdraw_from(state: State, live: Live, first: int) -> None:
    """Withdraws the keys of the published blocks from place `first` of the table on."""
    for index in range(first, live.published):
        withdraw(state.pool, live.table[index])


def visit_under_priority(state: State, step: Step, lawful: bool) -> None:
    """Makes room for the next running request by the priority policy, then visits it."""
    live = state.running[step.index]
    attempt = demand_of_running(state, step, live)
    while (refusal := ALLOCATE.refusal(attempt)) is not None and refusal.name == "pool":
        victim = max(state.running, key=lambda each: each.request.priority)
        entry = next((each for each in step.grants if each.request_id == victim.request.request_id), None)
        if entry is None or victim is live:
            break
        (preempt_scheduled_lawfully if lawful else preempt_scheduled)(state, step, victim, entry)
        step.index -= 1
    visit_one_running(state, step)


def schedule_under_priority(state: State, lawful: bool) -> StepPlan:
    """The step of the spec, with the other running pass."""
    state.log.clear()
    step = Step(state.config)
    while VISIT.refusal((state, step)) is None:
        visit_under_priority(state, step, lawful)
    while ADMISSIONS.refusal((state, step)) is None:
        if examine_one(state, step) and admit_one(state, step) is not None:
            break
    return close_step(state, step)
