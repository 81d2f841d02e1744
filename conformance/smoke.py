"""The smoke test: one request, three steps.  Failing it means that the adapter is wrong, not the scheduler."""

from __future__ import annotations

from conformance.answers import BrokenAnswer, make
from conformance.protocol import Implementation
from spec.vocabulary import Config, ModelOutput, Request

CONFIG = Config(num_blocks=9, block_size=4, max_num_batched_tokens=16, max_num_seqs=2, max_model_len=16)
REQUEST = Request("smoke", prompt_token_ids=(1, 2, 3, 4, 5), max_tokens=2)


def first_problem(implementation: Implementation, time_limit_s: float) -> str | None:
    """What is wrong with the adapter, or None.

    One prompt of five tokens alone: whatever the policy, it is computed in full, then one token, then the
    request has ended.
    """
    try:
        scheduler = make(implementation.factory, CONFIG, time_limit_s)
        if refusal := scheduler.add(REQUEST):
            return f"add() refused the only request: {refusal}"
        computed = 0
        for sampled in (6, 7):
            plan = scheduler.schedule()
            if [grant.request_id for grant in plan.grants] != [REQUEST.request_id]:
                return f"schedule() did not schedule the only request: {plan}"
            if plan.grants[0].start != computed:
                return f"schedule() starts at {plan.grants[0].start}, {computed} tokens are computed"
            computed += plan.grants[0].tokens
            if computed != sampled - 1:
                return f"schedule() did not schedule all {sampled - 1} known tokens: {plan}"
            result = scheduler.commit(plan, ModelOutput({REQUEST.request_id: (sampled,)}))
            if result.emitted != ((REQUEST.request_id, (sampled,)),):
                return f"commit() was given token {sampled} and delivered {result.emitted}"
        if [end.request_id for end in result.finished] != [REQUEST.request_id]:
            return f"commit() did not end the request after its last token: {result}"
        if scheduler.schedule().grants:
            return "schedule() schedules something although nothing is live"
    except BrokenAnswer as broken:
        return str(broken.violation)
    return None
