"""The vLLM adapter: golden traces to the block id, and each capability through vLLM's own code.

Skipped where vLLM is not installed.  It is imported by the adapter alone, which has to choose
the platform first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from conformance.protocol import CAPABILITIES, Implementation, Inspection, SchedulerUnderTest, load
from spec.vocabulary import (
    Admission,
    Config,
    EncoderItem,
    Finish,
    FinishReason,
    Grant,
    ModelOutput,
    Request,
    StepPlan,
    StepResult,
)

pytestmark = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed")

SAMPLED = 900
"""A token that stops nothing."""


@pytest.fixture(scope="module")
def vllm() -> Implementation:
    return load("vllm")


Make = Callable[..., SchedulerUnderTest]


@pytest.fixture
def make(vllm: Implementation) -> Make:
    """Schedulers with blocks of 4 tokens and room for everything but what a test limits."""

    def with_limits(num_blocks: int, **limits: Any) -> SchedulerUnderTest:
        room = {"block_size": 4, "max_num_batched_tokens": 64, "max_num_seqs": 8, "max_model_len": 64}
        return vllm.factory(Config(**{**room, "num_blocks": num_blocks, **limits}))

    return with_limits


def prompt(length: int, first: int = 1) -> tuple[int, ...]:
    return tuple(range(first, first + length))


def one_token_each(plan: StepPlan) -> ModelOutput:
    return ModelOutput({grant.request_id: (SAMPLED,) for grant in plan.grants})


def steps(scheduler: SchedulerUnderTest) -> Iterator[tuple[StepPlan, StepResult]]:
    """Steps in which every grant samples one token, for ever."""
    while True:
        plan = scheduler.schedule()
        yield plan, scheduler.commit(plan, one_token_each(plan))


def brief(plan: StepPlan) -> list[tuple[str, int, int, tuple[int, ...]]]:
    return [(grant.request_id, grant.start, grant.tokens, grant.blocks) for grant in plan.grants]


def look(scheduler: SchedulerUnderTest) -> Inspection:
    seen = scheduler.inspect()
    assert seen is not None
    return seen


def free_order(scheduler: SchedulerUnderTest) -> tuple[int, ...]:
    order = look(scheduler).free_order
    assert order is not None
    return order


def test_says_what_is_under_test(vllm: Implementation) -> None:
    assert vllm.capabilities == CAPABILITIES.keys()
    assert vllm.header[0].startswith("vLLM ")
    assert vllm.deviations is not None
    assert "+" not in vllm.deviations


@pytest.mark.parametrize("block_size", [1, 2, 3, 5, 16])
def test_takes_any_block_size(make: Make, block_size: int) -> None:
    scheduler = make(40, block_size=block_size, max_num_seqs=1, max_num_batched_tokens=7)
    scheduler.add(Request("a", prompt(5), 2))
    (grant,) = scheduler.schedule().grants
    assert grant.blocks == tuple(range(1, 1 + -(-5 // block_size)))


# Golden traces


def test_gt1_preempts_and_resumes(make: Make) -> None:
    scheduler = make(7)
    scheduler.add(Request("a", prompt(11), 6))
    scheduler.add(Request("b", prompt(11, 101), 6))
    run = steps(scheduler)

    plan, _ = next(run)
    assert plan.grants == (
        Grant("a", Admission.NEW, 0, 11, (1, 2, 3)),
        Grant("b", Admission.NEW, 0, 11, (4, 5, 6)),
    )
    plan, _ = next(run)
    assert brief(plan) == [("a", 11, 1, ()), ("b", 11, 1, ())]
    plan, _ = next(run)
    assert brief(plan) == [("a", 12, 1, (6,))]
    assert plan.preempted == ("b",)
    for start in (13, 14, 15):
        plan, result = next(run)
        assert plan.grants == (Grant("a", Admission.RUNNING, start, 1, ()),)
        assert plan.preempted == ()
    assert result.finished == (Finish("a", FinishReason.LENGTH),)

    plan, _ = next(run)
    assert plan.grants == (Grant("b", Admission.RESUMED, 8, 5, (4, 5, 6, 3)),)
    assert plan.finished == ("a",)
    for start in (13, 14, 15):
        plan, result = next(run)
        assert plan.grants == (Grant("b", Admission.RUNNING, start, 1, ()),)
    assert result.finished == (Finish("b", FinishReason.LENGTH),)
    plan, _ = next(run)
    assert plan == StepPlan((), finished=("b",), common_prefix_blocks=0)
    assert free_order(scheduler) == (2, 1, 3, 6, 5, 4)


def test_gt2_hits_in_the_same_step(make: Make) -> None:
    scheduler = make(40)
    scheduler.add(Request("a", prompt(9), 1))
    scheduler.add(Request("b", prompt(9), 8))
    plan, result = next(steps(scheduler))
    assert brief(plan) == [("a", 0, 9, (1, 2, 3)), ("b", 8, 1, (1, 2, 4))]
    assert plan.common_prefix_blocks == 2
    assert result.finished == (Finish("a", FinishReason.LENGTH),)
    scheduler.abort("b")
    assert free_order(scheduler)[-4:] == (3, 4, 2, 1)


def test_gt3_skipped_requests_keep_their_order(make: Make) -> None:
    scheduler = make(40, max_loras=1)
    for index, lora_id in enumerate((1, 2, 3, 1, 0, 2)):
        scheduler.add(Request(f"r{index}", prompt(4, 10 * index), 4, lora_id=lora_id))
    plan = scheduler.schedule()
    assert brief(plan) == [("r0", 0, 4, (1,)), ("r3", 0, 4, (2,)), ("r4", 0, 4, (3,))]
    assert look(scheduler).waiting == ("r1", "r2", "r5")


def test_gt4_several_victims_wait_in_their_running_order(make: Make) -> None:
    scheduler = make(8)
    for index in range(3):
        scheduler.add(Request(f"r{index}", prompt(8, 100 * index), 20))
    run = steps(scheduler)
    plan, _ = next(run)
    assert brief(plan) == [("r0", 0, 8, (1, 2)), ("r1", 0, 8, (3, 4)), ("r2", 0, 8, (5, 6))]
    plan, _ = next(run)
    assert brief(plan) == [("r0", 8, 1, (7,)), ("r1", 8, 1, (6,))]
    assert plan.preempted == ("r2",)
    assert look(scheduler).waiting == ("r2",)
    for _ in range(4):
        plan, _ = next(run)
    assert brief(plan) == [("r0", 12, 1, (5,))]
    assert plan.preempted == ("r1",)
    assert look(scheduler).waiting == ("r1", "r2")


def test_two_victims_of_one_step_are_told_last_admitted_first(make: Make) -> None:
    scheduler = make(7, max_num_batched_tokens=32, num_speculative_tokens=7)
    for index in range(3):
        scheduler.add(Request(f"r{index}", prompt(4 * (3 - index) - 2, 100 * index), 20))
    plan = scheduler.schedule()
    drafts = {"r0": (1, 2, 3, 4, 5, 6, 7)}
    scheduler.commit(plan, ModelOutput(dict.fromkeys(("r0", "r1", "r2"), (SAMPLED,)), drafts))
    plan = scheduler.schedule()
    assert plan.preempted == ("r2", "r1")
    assert look(scheduler).waiting == ("r1", "r2")


# Capabilities


def test_waits_for_a_grammar_until_it_is_ready(make: Make) -> None:
    scheduler = make(20)
    scheduler.add(Request("g", prompt(4), 3, needs_grammar=True))
    scheduler.add(Request("h", prompt(4, 50), 9))
    run = steps(scheduler)
    assert [grant.request_id for grant in next(run)[0].grants] == ["h"]
    assert look(scheduler).waiting == ("g",)
    scheduler.grammar_ready("g")
    scheduler.grammar_ready("nobody")
    plan, result = next(run)
    assert [grant.request_id for grant in plan.grants] == ["h", "g"]
    assert result.emitted == (("h", (SAMPLED,)), ("g", (SAMPLED,)))


def test_loads_external_tokens_beyond_the_hit(make: Make) -> None:
    scheduler = make(20, use_connector=True)
    run = steps(scheduler)
    scheduler.add(Request("a", prompt(11), 9, external_tokens=9))
    assert next(run)[0].grants == (Grant("a", Admission.NEW, 9, 2, (1, 2, 3), external=9),)
    scheduler.add(Request("b", prompt(11), 9, external_tokens=9))
    assert next(run)[0].grants[1] == Grant("b", Admission.NEW, 9, 2, (1, 2, 4), external=1)
    assert all(grant.external == 0 for grant in next(run)[0].grants)


def test_keeps_drafts_as_they_were_scheduled(make: Make) -> None:
    scheduler = make(20, num_speculative_tokens=2)
    scheduler.add(Request("a", prompt(8), 9))
    scheduler.commit(scheduler.schedule(), ModelOutput({"a": (5,)}, {"a": (6, 7)}))
    plan = scheduler.schedule()
    assert plan.grants == (Grant("a", Admission.RUNNING, 8, 3, (3,), (6, 7)),)
    scheduler.commit(plan, ModelOutput({"a": (6, 9)}, {"a": (1,)}))
    assert plan.grants[0].drafts == (6, 7)
    assert scheduler.schedule().grants == (Grant("a", Admission.RUNNING, 10, 2, (), (1,)),)


def test_eagle_keeps_lookahead_slots_and_drops_the_last_hit(make: Make) -> None:
    scheduler = make(20, num_speculative_tokens=2, use_eagle=True)
    scheduler.add(Request("a", prompt(8), 1))
    plan, _ = next(steps(scheduler))
    assert brief(plan) == [("a", 0, 8, (1, 2, 3))]
    scheduler.add(Request("b", prompt(9), 1))
    assert brief(scheduler.schedule()) == [("b", 4, 5, (1, 4, 5))]


def test_encoder_items_are_granted_and_freed(make: Make) -> None:
    scheduler = make(20, max_num_encoder_input_tokens=4, encoder_cache_size=4)
    scheduler.add(Request("a", prompt(12), 9, items=(EncoderItem(1, 3, 77), EncoderItem(5, 4, 78))))
    plan = scheduler.schedule()
    assert plan.grants == (Grant("a", Admission.NEW, 0, 5, (1, 2), items=(0,)),)
    assert look(scheduler).encoder_free == 1
    scheduler.commit(plan, ModelOutput({}))
    plan = scheduler.schedule()
    assert plan.grants == (Grant("a", Admission.RUNNING, 5, 7, (3,), items=(1,)),)
    assert plan.freed_items == (("a", 0),)


def test_prompt_logprobs_do_not_read_the_cache(make: Make) -> None:
    scheduler = make(20)
    run = steps(scheduler)
    for request_id in ("a", "b"):
        scheduler.add(Request(request_id, prompt(9), 1, prompt_logprobs=True))
        plan, _ = next(run)
        assert plan.grants[0].start == 0


def test_tells_why_requests_ended(make: Make) -> None:
    scheduler = make(20)
    scheduler.add(Request("eos", prompt(3), 9, eos_token_id=SAMPLED))
    scheduler.add(Request("id", prompt(3), 9, stop_token_ids=(7, SAMPLED)))
    scheduler.add(Request("on", prompt(3), 9, eos_token_id=SAMPLED, ignore_eos=True))
    _, result = next(steps(scheduler))
    assert result.finished == (Finish("eos", FinishReason.STOP), Finish("id", FinishReason.STOP, SAMPLED))
    assert not scheduler.reset_prefix_cache()
    scheduler.abort("on")
    scheduler.abort("nobody")
    assert scheduler.schedule().finished == ("eos", "id", "on")
    assert scheduler.reset_prefix_cache()


def test_looks_at_chosen_blocks_only(make: Make) -> None:
    scheduler = make(20)
    scheduler.add(Request("a", prompt(9), 9))
    scheduler.schedule()
    seen = scheduler.inspect([1, 3, 19])
    assert seen is not None
    assert seen.refs == {1: 1, 3: 1, 19: 0}
    assert seen.keys.keys() == {1}
    assert seen.free_order is None
    assert look(scheduler).tables == {"a": (1, 2, 3)}
    assert look(scheduler).computed == {"a": 9}


def test_what_vllm_raises_goes_through(make: Make) -> None:
    """Untrimmed drafts make 0.8.5 forget that it has published a block; it asserts when it does so again."""
    scheduler = make(20, num_speculative_tokens=3, long_prefill_token_threshold=1)
    scheduler.add(Request("a", prompt(4), 20))

    def step() -> None:
        plan = scheduler.schedule()
        sampled = (SAMPLED,) if plan.grants[0].start >= 3 else ()
        scheduler.commit(plan, ModelOutput({"a": sampled}, {"a": (1, 2, 3) if sampled else ()}))

    for _ in range(6):
        step()
    with pytest.raises(AssertionError):
        step()
