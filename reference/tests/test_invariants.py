"""What holds after every call, on random runs of everything at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from reference.scheduler import Scheduler
from spec.vocabulary import Config, EncoderItem, ModelOutput, Refused, Request, Status, StepPlan

CONFIGS = st.builds(
    Config,
    num_blocks=st.integers(4, 12),
    block_size=st.integers(1, 4),
    max_num_batched_tokens=st.integers(4, 16),
    max_num_seqs=st.integers(1, 4),
    max_model_len=st.integers(8, 24),
    long_prefill_token_threshold=st.sampled_from((0, 0, 3)),
    enable_prefix_caching=st.sampled_from((True, True, False)),
    num_speculative_tokens=st.just(2),
    use_eagle=st.booleans(),
    max_loras=st.just(1),
    max_num_encoder_input_tokens=st.just(6),
    encoder_cache_size=st.just(8),
    disable_chunked_mm_input=st.booleans(),
    use_connector=st.just(True),
)


@given(CONFIGS, st.data())
def test_random_runs(config: Config, data: st.DataObject) -> None:
    scheduler = Scheduler(config)
    for number in range(data.draw(st.integers(1, 12), "steps")):
        for name in data.draw(st.lists(st.sampled_from("abcdef"), max_size=3), "arrivals"):
            add_if_accepted(scheduler, draw_request(data, name))
        scheduler.grammar_ready(data.draw(st.sampled_from("abcdef"), "grammar"))
        plan = scheduler.schedule()
        check_plan(scheduler, plan)
        check_state(scheduler)
        if number % 3 == 2:
            scheduler.abort(data.draw(st.sampled_from("abcdef"), "abort"))
            check_state(scheduler)
        scheduler.commit(plan, draw_output(data, scheduler, plan))
        check_state(scheduler)
    check_idle(scheduler)


def draw_request(data: st.DataObject, name: str) -> Request:
    prompt = data.draw(st.lists(st.integers(0, 1), min_size=1, max_size=8), "prompt")
    item = data.draw(st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(0, 1)), "item")
    items = (EncoderItem(*item),) if sum(item[:2]) <= len(prompt) else ()
    return Request(
        name,
        tuple(prompt),
        max_tokens=data.draw(st.integers(1, 6), "max_tokens"),
        eos_token_id=1,
        lora_id=data.draw(st.integers(0, 2), "lora"),
        items=items,
        needs_grammar=data.draw(st.booleans(), "grammar"),
        external_tokens=data.draw(st.integers(0, len(prompt) - 1), "external"),
    )


def add_if_accepted(scheduler: Scheduler, request: Request) -> None:
    was_live = request.request_id in scheduler.live
    reason = ""
    try:
        scheduler.add(request)
    except Refused as refusal:
        reason = str(refusal)
    assert was_live == reason.startswith("id: ")


def draw_output(data: st.DataObject, scheduler: Scheduler, plan: StepPlan) -> ModelOutput:
    sampled: dict[str, Sequence[int]] = {}
    drafts: dict[str, Sequence[int]] = {}
    for grant in plan.grants:
        live = scheduler.live.get(grant.request_id)
        if live is None or live.computed < len(live.tokens):
            continue
        tokens = st.integers(0, 2)
        sampled[grant.request_id] = tuple(
            data.draw(st.lists(tokens, min_size=1, max_size=len(grant.drafts) + 1), "sampled")
        )
        drafts[grant.request_id] = tuple(data.draw(st.lists(tokens, max_size=2), "drafts"))
    return ModelOutput({k: tuple(v) for k, v in sampled.items()}, {k: tuple(v) for k, v in drafts.items()})


def check_plan(scheduler: Scheduler, plan: StepPlan) -> None:
    config = scheduler.config
    assert sum(grant.tokens for grant in plan.grants) <= config.max_num_batched_tokens
    assert len({grant.request_id for grant in plan.grants}) == len(plan.grants)
    for grant in plan.grants:
        live = scheduler.live[grant.request_id]
        assert grant.tokens >= 1
        assert live.computed == grant.start + grant.tokens <= config.max_model_len
        assert live.computed <= len(live.table) * config.block_size
    if plan.preempted:
        assert all(grant.admission == "running" for grant in plan.grants)


def check_state(scheduler: Scheduler) -> None:
    config = scheduler.config
    pool = scheduler.kv_cache.pool
    held = Counter(block for live in scheduler.live.values() for block in live.table)
    assert [held[block] for block in range(config.num_blocks)] == pool.references
    assert sorted([*pool.free_queue, *held]) == list(range(1, config.num_blocks))
    queued = [live.request_id for live in (*scheduler.running, *scheduler.waiting)]
    assert sorted(queued) == sorted(scheduler.live)
    assert all(live.status is Status.RUNNING for live in scheduler.running)
    assert all(live.status is not Status.RUNNING for live in scheduler.waiting)
    assert all(live.computed == live.published_blocks == 0 and not live.table for live in scheduler.waiting)
    assert len({live.request.lora_id for live in scheduler.running} - {0}) <= config.max_loras
    assert len(scheduler.running) <= config.max_num_seqs
    for live in scheduler.running:
        published = [pool.index.key_of(block) for block in live.table[: live.published_blocks]]
        assert published == live.keys[: live.published_blocks]
        assert live.published_blocks * config.block_size <= live.computed
    check_encoder(scheduler)


def check_encoder(scheduler: Scheduler) -> None:
    cached = scheduler.encoder_cache.cached
    used = sum(scheduler.live[name].request.items[number].length for name in cached for number in cached[name])
    assert used + scheduler.encoder_cache.free_tokens == scheduler.config.encoder_cache_size
    assert scheduler.encoder_cache.free_tokens >= 0


def check_idle(scheduler: Scheduler) -> None:
    """With nobody left nothing is held, and a reset leaves nothing cached."""
    for name in tuple(scheduler.live):
        scheduler.abort(name)
    check_state(scheduler)
    scheduler.schedule()
    assert scheduler.schedule() == StepPlan((), common_prefix_blocks=0)
    assert scheduler.reset_prefix_cache()
    assert len(scheduler.kv_cache.keys) == 0
