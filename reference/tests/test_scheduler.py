"""The scheduler's calls: add, abort, reset, grammar, commit; and what holds between them."""

from __future__ import annotations

import pytest

from reference.tests.driving import FILLER, Driver, config
from spec.vocabulary import Finish, FinishReason, ModelOutput, Refused, StepPlan


def test_a_live_id_is_refused_and_a_finished_one_is_not() -> None:
    driver = Driver()
    driver.add("r0", 4, max_tokens=1)
    with pytest.raises(Refused, match=r"^id: r0 is live$"):
        driver.add("r0", 4)
    driver.step()
    driver.add("r0", 4)
    assert driver.step() == "r0@0+4[2] | finished r0"


def test_what_can_never_fit_is_refused() -> None:
    driver = Driver(config(num_blocks=4, max_model_len=16))
    with pytest.raises(Refused, match=r"^pool: a may need 4 blocks, 3 are usable$"):
        driver.add("a", 11, max_tokens=3)
    driver.add("a", 11, max_tokens=2)
    assert driver.waiting == "a"


def test_abort_of_nobody_is_ignored() -> None:
    driver = Driver()
    driver.scheduler.abort("a")
    driver.scheduler.grammar_ready("a")
    assert driver.step() == ""


def test_abort_before_any_step() -> None:
    driver = Driver()
    driver.add("a", 4)
    driver.add("b", 4, needs_grammar=True)
    driver.scheduler.abort("b")
    driver.scheduler.abort("a")
    assert driver.step() == " | finished a b"
    assert driver.waiting == ""


def test_abort_while_running_between_steps() -> None:
    driver = Driver()
    driver.add("a", 9)
    driver.step()
    driver.scheduler.abort("a")
    assert driver.free == [*range(4, 40), 3, 2, 1]
    assert driver.step() == " | finished a"


def test_abort_in_flight_drops_the_output() -> None:
    driver = Driver()
    driver.add("a", 4)
    driver.add("b", 4)
    plan = driver.scheduler.schedule()
    driver.scheduler.abort("a")
    driver.commit(plan, sampled={"a": (FILLER,)})
    assert driver.result.emitted == (("b", (FILLER,)),)
    assert driver.step() == "b@4+1[3] | finished a"


def test_abort_of_a_preempted_request() -> None:
    driver = Driver(config(num_blocks=7))
    driver.add("a", 11, max_tokens=6)
    driver.add("b", 11, max_tokens=6)
    driver.steps(3)
    assert driver.waiting == "b"
    driver.scheduler.abort("b")
    assert driver.step() == "a@13+1[] | finished b"
    assert driver.free == [5, 4]


def test_abort_frees_items() -> None:
    driver = Driver(config(max_num_encoder_input_tokens=8, encoder_cache_size=8, long_prefill_token_threshold=4))
    driver.add("a", 12, items=[(1, 6, 70)])
    driver.step()
    driver.scheduler.abort("a")
    assert driver.step() == " | finished a | freed a.0"


def test_reset_needs_that_no_block_is_held() -> None:
    driver = Driver()
    driver.add("a", range(8), max_tokens=2)
    driver.step()
    assert not driver.scheduler.reset_prefix_cache()
    driver.step()
    order = driver.free
    assert driver.scheduler.reset_prefix_cache()
    assert driver.free == order
    driver.add("b", range(9))
    assert driver.step() == "b@0+9[4,5,6] | finished a"


def test_reset_leaves_the_keys_of_who_waits_valid() -> None:
    driver = Driver(config(num_blocks=4))
    driver.add("a", range(12), max_tokens=1)
    driver.add("b", range(12), max_tokens=1)
    assert driver.step() == "a@0+12[1,2,3]"
    assert driver.scheduler.reset_prefix_cache()
    assert driver.step() == "b@0+12[3,2,1] | finished a"
    driver.add("c", range(12), max_tokens=1)
    assert driver.step() == "c@8+4[3,2,1] | finished b"


def test_a_grammar_counts_when_the_request_is_examined() -> None:
    driver = Driver(config(max_num_seqs=1))
    driver.add("a", 4, max_tokens=2)
    driver.add("g", 4, needs_grammar=True)
    driver.step()
    driver.scheduler.grammar_ready("g")
    assert driver.scheduler.live["g"].status == "waiting_for_grammar"
    driver.step()
    assert driver.step() == "g@0+4[3] | finished a"
    assert driver.scheduler.live["g"].status == "running"


def test_seats_and_budget() -> None:
    driver = Driver(config(max_num_seqs=2, max_num_batched_tokens=6))
    for name in "abc":
        driver.add(name, 5, max_tokens=2)
    assert driver.step() == "a@0+5[1,2] b@0+1[3]"
    assert driver.step() == "a@5+1[] b@1+4[4]"
    assert driver.step() == "b@5+1[] c@0+5[5,6] | finished a"


def test_skipped_requests_stay_before_those_not_examined() -> None:
    driver = Driver(config(max_num_seqs=1))
    for name in "gbc":
        driver.add(name, 4, needs_grammar=name == "g")
    assert driver.step() == "b@0+4[1]"
    assert driver.waiting == "g c"


def test_what_was_freed_is_told_sorted() -> None:
    driver = Driver(config(max_num_encoder_input_tokens=20, encoder_cache_size=20))
    driver.add("b", 8, max_tokens=1, items=[(0, 2, 70), (4, 2, 71)])
    driver.add("a", 8, max_tokens=1, items=[(0, 2, 70)])
    driver.step()
    assert driver.step() == " | finished a b | freed a.0 b.0 b.1"


def test_admissions_are_told() -> None:
    driver = Driver(config(num_blocks=7))
    driver.add("a", 11, max_tokens=6)
    driver.add("b", 11, max_tokens=6)
    told = []
    for _ in range(8):
        plan = driver.scheduler.schedule()
        driver.commit(plan)
        told.append(" ".join(f"{grant.request_id}:{grant.admission}" for grant in plan.grants))
    assert told[:3] == ["a:new b:new", "a:running b:running", "a:running"]
    assert told[6:] == ["b:resumed", "b:running"]


def test_a_long_prefill_is_chunked_by_the_threshold() -> None:
    driver = Driver(config(long_prefill_token_threshold=4, num_speculative_tokens=6))
    driver.add("a", 9)
    assert driver.step() == "a@0+4[1]"
    assert driver.step() == "a@4+4[2]"
    assert driver.step(drafts={"a": (1, 2, 3, 4, 5, 6)}) == "a@8+1[3]"
    # It bounds a decode with many drafts as well.
    assert driver.step() == "a@9+4[4] d(1,2,3)"


def test_running_grants_end_at_the_model_length() -> None:
    driver = Driver(config(max_model_len=8, num_speculative_tokens=3))
    driver.add("a", 6)
    driver.step(drafts={"a": (1, 2, 3)})
    assert driver.step(sampled={"a": (1, 5)}) == "a@6+2[] d(1)"
    assert driver.result.finished == (Finish("a", FinishReason.LENGTH),)
    assert driver.result.emitted == (("a", (1,)),)


def test_tokens_behind_a_stop_are_dropped() -> None:
    driver = Driver(config(num_speculative_tokens=3))
    driver.add("a", 4, stop_token_ids=(7,))
    driver.step(drafts={"a": (1, 7, 3)})
    driver.step(sampled={"a": (1, 7, 3, 4)})
    assert driver.result.emitted == (("a", (1, 7)),)
    assert driver.result.finished == (Finish("a", FinishReason.STOP, 7),)


def test_results_stand_in_the_order_of_the_running_list() -> None:
    driver = Driver()
    for name in "cab":
        driver.add(name, 5, max_tokens=1)
    driver.step()
    assert [name for name, _ in driver.result.emitted] == ["c", "a", "b"]
    assert [finish.request_id for finish in driver.result.finished] == ["c", "a", "b"]
    # Blocks return in that order too, each table from its tail.
    assert driver.free[-6:] == [2, 1, 4, 3, 6, 5]


def test_a_partial_prefill_emits_nothing() -> None:
    driver = Driver(config(max_num_batched_tokens=8))
    driver.add("a", 9)
    driver.step()
    assert driver.result.emitted == ()


def test_without_speculation_drafts_are_not_taken_in() -> None:
    driver = Driver()
    driver.add("a", 4)
    driver.step(drafts={"a": (1, 2)})
    assert driver.step() == "a@4+1[2]"


def test_adapters_of_all_running_requests_count() -> None:
    features = {"max_num_encoder_input_tokens": 4, "encoder_cache_size": 8, "long_prefill_token_threshold": 4}
    driver = Driver(config(max_loras=1, **features))
    driver.add("a", 8, items=[(4, 4, 70)])
    driver.add("b", 8, items=[(4, 4, 71)], lora_id=1)
    assert driver.step() == "a@0+4[1] b@0+4[2]"
    driver.add("c", 4, lora_id=2)
    driver.add("d", 4, lora_id=1)
    # b waits for the encoder in this step, but its adapter stays loaded.
    assert driver.step() == "a@4+4[3] i(0) d@0+4[4]"
    assert driver.waiting == "c"
    driver.scheduler.abort("b")
    driver.scheduler.abort("d")
    assert driver.step() == "a@8+1[5] c@0+4[6] | finished b d | freed a.0"


def test_the_common_prefix_counts_blocks_that_all_running_requests_hold() -> None:
    driver = Driver()
    driver.add("a", range(9))
    assert common_prefix(driver) == 3
    driver.add("b", range(9))
    assert common_prefix(driver) == 2
    driver.add("c", 4)
    assert common_prefix(driver) == 0
    for name in "abc":
        driver.scheduler.abort(name)
    assert common_prefix(driver) == 0


def test_an_empty_plan_can_be_committed() -> None:
    driver = Driver()
    assert driver.scheduler.commit(StepPlan(()), ModelOutput({})) == ((), ())


def common_prefix(driver: Driver) -> int | None:
    plan = driver.scheduler.schedule()
    driver.commit(plan)
    return plan.common_prefix_blocks
