"""One step, translated: vLLM's decision to a plan, tokens to its input, its outputs to a result.

vLLM reuses the records of a decision, and trims the draft lists in it, in later steps: whatever
goes into a plan is copied at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vllm.v1.engine import FinishReason as VllmFinishReason
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import RequestStatus

from spec.vocabulary import Admission, Finish, FinishReason, Grant, ModelOutput, StepPlan, StepResult

REASONS: Mapping[Any, FinishReason] = {
    VllmFinishReason.STOP: FinishReason.STOP,
    VllmFinishReason.LENGTH: FinishReason.LENGTH,
    VllmFinishReason.ABORT: FinishReason.ABORT,
}


def step_plan(decision: Any, preempted: tuple[str, ...], loaded: Mapping[str, int]) -> StepPlan:
    """The grants in the order in which vLLM counted their tokens (OUT-2)."""
    new = {record.req_id: record for record in decision.scheduled_new_reqs}
    known = {record.req_id: record for record in decision.scheduled_cached_reqs}
    drafts: Mapping[str, Sequence[int]] = decision.scheduled_spec_decode_tokens
    items: Mapping[str, Sequence[int]] = decision.scheduled_encoder_inputs
    grants = []
    for request_id, tokens in decision.num_scheduled_tokens.items():
        record = known.get(request_id)
        if record is None:
            record = new[request_id]
            admission, blocks = Admission.NEW, record.block_ids
        else:
            admission = Admission.RESUMED if record.resumed_from_preemption else Admission.RUNNING
            blocks = record.new_block_ids
        grants.append(
            Grant(
                request_id,
                admission,
                record.num_computed_tokens,
                tokens,
                tuple(blocks),
                tuple(drafts[request_id]) if request_id in drafts else (),
                tuple(items[request_id]) if request_id in items else (),
                loaded.get(request_id, 0),
            )
        )
    return StepPlan(
        tuple(grants),
        preempted,
        tuple(sorted(decision.finished_req_ids)),
        tuple(sorted(decision.free_encoder_input_ids)),
        decision.num_common_prefix_blocks,
    )


def preempted_in(decision: Any, before: Sequence[Any], running: Sequence[Any]) -> tuple[str, ...]:
    """Who lost its place in this step, last admitted first, which is the order of PRE-1.

    This release does not tell, so the running requests are compared with those before the step,
    but only if their number is not what the admissions explain.
    """
    resumed = {record.req_id for record in decision.scheduled_cached_reqs if record.resumed_from_preemption}
    if len(running) == len(before) + len(decision.scheduled_new_reqs) + len(resumed):
        return ()
    return tuple(
        request.request_id
        for request in reversed(before)
        if request.status is RequestStatus.PREEMPTED or request.request_id in resumed
    )


def runner_output(decision: Any, output: ModelOutput, speculates: bool) -> Any:
    """What vLLM's model runner would return.  The lists are new: vLLM trims and keeps them."""
    request_ids = list(decision.num_scheduled_tokens)
    sampled, drafts = output.sampled, output.drafts
    return ModelRunnerOutput(
        req_ids=request_ids,
        req_id_to_index={request_id: index for index, request_id in enumerate(request_ids)},
        sampled_token_ids=[list(sampled.get(request_id, ())) for request_id in request_ids],
        spec_token_ids=[list(drafts.get(request_id, ())) for request_id in request_ids] if speculates else None,
        logprobs=None,
        prompt_logprobs_dict={},
    )


def step_result(outputs: Any) -> StepResult:
    """What goes to the clients, in the order in which vLLM lists it (UPD-4)."""
    return StepResult(
        tuple([(each.request_id, tuple(each.new_token_ids)) for each in outputs.outputs]),
        tuple([_finish(each) for each in outputs.outputs if each.finish_reason is not None]),
    )


def _finish(output: Any) -> Finish:
    stop_token = output.stop_reason if isinstance(output.stop_reason, int) else None
    return Finish(output.request_id, REASONS[output.finish_reason], stop_token)
