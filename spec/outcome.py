"""After the model has answered: rejected drafts roll back, tokens are appended, requests stop."""

from __future__ import annotations

from spec import encoder
from spec.formulas import rejected_drafts
from spec.lifecycle import finish
from spec.state import Live, State
from spec.vocabulary import Finish, FinishReason, Grant, ModelOutput, StepPlan, StepResult


def commit(state: State, plan: StepPlan, output: ModelOutput) -> StepResult:
    """Applies the model's output to the running requests, in their order (UPD-1)."""
    granted = {entry.request_id: entry for entry in plan.grants}
    emitted: list[tuple[str, tuple[int, ...]]] = []
    finished: list[Finish] = []
    still_running: list[Live] = []
    for live in state.running:
        entry = granted.get(live.request.request_id)
        end = None if entry is None else settle_one(state, live, entry, output, emitted)
        if end is None:
            still_running.append(live)
        else:
            finished.append(end)
    state.running = still_running
    return StepResult(tuple(emitted), tuple(finished))


def settle_one(
    state: State,
    live: Live,
    entry: Grant,
    output: ModelOutput,
    emitted: list[tuple[str, tuple[int, ...]]],
) -> Finish | None:
    """Rolls rejected drafts back, frees consumed items, appends the tokens up to a stop (SPEC-4, UPD-3, UPD-4)."""
    request_id = entry.request_id
    sampled = output.sampled.get(request_id, ())
    if entry.drafts:
        rejected = rejected_drafts(len(entry.drafts), len(sampled))
        live.computed -= rejected
        state.log.append(("verify", "some rejected" if rejected else "all accepted"))
    if live.cached:
        encoder.free_consumed(state, live)
    if state.config.num_speculative_tokens:
        live.drafts = tuple(output.drafts.get(request_id, ()))
    end = None
    known = live.known
    for token in sampled:
        live.tokens.append(token)
        live.known += 1
        end = stop(state, live, token)
        if end is not None:
            finish(state, live)
            break
    if sampled:
        emitted.append((request_id, sampled[: live.known - known]))
    return end


def stop(state: State, live: Live, token: int) -> Finish | None:
    """Whether `token`, just appended, ends the request: a stop token, then a length cap (FIN-1)."""
    request = live.request
    at_cap = live.known >= live.limit
    if at_cap and "length_before_stop" in state.profile.quirks:
        reason = FinishReason.LENGTH
        stop_token = None
    elif token == request.eos_token_id and not request.ignore_eos:
        reason = FinishReason.STOP
        stop_token = None
    elif token in request.stop_token_ids:
        reason = FinishReason.STOP
        stop_token = token
    elif at_cap:
        reason = FinishReason.LENGTH
        stop_token = None
    else:
        return None
    state.log.append(("stop", reason.value))
    return Finish(request.request_id, reason, stop_token)
