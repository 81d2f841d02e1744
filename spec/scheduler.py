"""The step of the vLLM V1 scheduler, as micro-steps and as loops over them.

There is no prefill phase and no decode phase.  Each request has tokens that are known and tokens
that are computed, and every step lets the second number catch up with the first.  Running
requests go first, in the order of their admission; each takes what it needs from the budget and the
pool, and where the pool is too small the newest running request is preempted.  If nobody was
preempted, waiting requests are admitted until the budget, the seats or the pool run out.

An action is one micro-step: it touches one request and a bounded number of blocks for each block it
takes.  `schedule` and `commit` only repeat actions while a guard lets them.
"""

from __future__ import annotations

from spec.allocation import Step
from spec.lifecycle import abort, add, grammar_ready, reset_prefix_cache
from spec.outcome import commit
from spec.running import VISIT, visit_one_running
from spec.state import State
from spec.vocabulary import Config, ModelOutput, Profile, Request, StepPlan, StepResult
from spec.waiting import ADMISSIONS, admit_one, examine_one


def schedule(state: State) -> StepPlan:
    """Decides one step: running requests first, then admissions.  Deterministic, to the block id.

    The adapters of all running requests count, also of one that got nothing in this step (LORA-1).
    """
    state.log.clear()
    step = Step(state.config)
    while (refusal := VISIT.refusal((state, step))) is None:
        visit_one_running(state, step)
    state.log.append(("visit", refusal.name))
    step.adapters = {live.request.lora_id for live in state.running if live.request.lora_id}
    while (refusal := ADMISSIONS.refusal((state, step))) is None:
        if examine_one(state, step) and admit_one(state, step) is not None:
            break
    else:
        state.log.append(("admissions", refusal.name))
    return close_step(state, step)


def close_step(state: State, step: Step) -> StepPlan:
    """Puts the skipped back in front, writes the plan, then advances the computed tokens (Q-3, OUT-2, ADV-1)."""
    state.waiting.extendleft(reversed(step.skipped))
    plan = StepPlan(
        tuple(step.grants),
        tuple(step.preempted),
        tuple(sorted(state.finished)),
        tuple(sorted(state.freed)),
        common_prefix_blocks(state),
    )
    for entry in step.grants:
        state.live[entry.request_id].computed += entry.tokens
    state.finished = []
    state.freed = []
    return plan


def common_prefix_blocks(state: State) -> int:
    """Leading blocks that every running request holds (OUT-5)."""
    if not state.running:
        return 0
    count = 0
    for block in state.running[0].table:
        if state.pool.refs[block] != len(state.running):
            break
        count += 1
    return count


class Oracle:
    """The spec behind the methods of the suite's protocol."""

    def __init__(self, config: Config, profile: Profile) -> None:
        self.state = State(config, profile)

    def add(self, request: Request) -> None:
        add(self.state, request)

    def abort(self, request_id: str) -> None:
        abort(self.state, request_id)

    def grammar_ready(self, request_id: str) -> None:
        grammar_ready(self.state, request_id)

    def reset_prefix_cache(self) -> bool:
        return reset_prefix_cache(self.state)

    def schedule(self) -> StepPlan:
        return schedule(self.state)

    def commit(self, plan: StepPlan, output: ModelOutput) -> StepResult:
        return commit(self.state, plan, output)
