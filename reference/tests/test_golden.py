"""Golden traces: short runs whose every plan is known to the block id.

The first four were recorded from vLLM 0.8.5; the others state by hand what the rules say.
"""

from __future__ import annotations

from reference.tests.driving import Driver, config

ENCODER = {"max_num_encoder_input_tokens": 20, "encoder_cache_size": 20}


def test_preempt_and_resume() -> None:
    driver = Driver(config(num_blocks=7))
    driver.add("a", 11, max_tokens=6)
    driver.add("b", 11, max_tokens=6)
    assert driver.step() == "a@0+11[1,2,3] b@0+11[4,5,6]"
    assert driver.step() == "a@11+1[] b@11+1[]"
    assert driver.step() == "a@12+1[6] | preempted b"
    assert driver.free == [5, 4]
    # b needs 2 new blocks and would hit 2 free ones: 2 > 2 - 2.
    assert driver.steps(3) == ["a@13+1[]", "a@14+1[]", "a@15+1[]"]
    assert driver.step() == "b@8+5[4,5,6,3] resumed | finished a"
    assert driver.published("b") == [True, True, True, False]
    assert driver.steps(3) == ["b@13+1[]", "b@14+1[]", "b@15+1[]"]
    assert driver.step() == " | finished b"
    assert driver.free == [2, 1, 3, 6, 5, 4]


def test_hit_in_the_same_step() -> None:
    driver = Driver(config(num_blocks=40))
    driver.add("a", range(9), max_tokens=1)
    driver.add("b", range(9))
    assert driver.step() == "a@0+9[1,2,3] b@8+1[1,2,4]"
    driver.scheduler.abort("b")
    assert driver.free == [*range(5, 40), 3, 4, 2, 1]


def test_skipped_requests_keep_their_order() -> None:
    driver = Driver(config(max_loras=1))
    for number, adapter in enumerate((1, 2, 3, 1, 0, 2)):
        driver.add(f"r{number}", 4, lora_id=adapter)
    assert driver.step() == "r0@0+4[1] r3@0+4[2] r4@0+4[3]"
    assert driver.waiting == "r1 r2 r5"


def test_several_victims_stand_in_their_old_order() -> None:
    driver = Driver(config(num_blocks=8))
    for name in ("r0", "r1", "r2"):
        driver.add(name, 8)
    assert driver.step() == "r0@0+8[1,2] r1@0+8[3,4] r2@0+8[5,6]"
    assert driver.step() == "r0@8+1[7] r1@8+1[6] | preempted r2"
    assert driver.steps(3) == [f"r0@{start}+1[] r1@{start}+1[]" for start in (9, 10, 11)]
    assert driver.step() == "r0@12+1[5] | preempted r1"
    assert driver.waiting == "r1 r2"


def test_two_victims_in_one_step() -> None:
    driver = Driver(config(num_blocks=5, long_prefill_token_threshold=8))
    driver.add("a", 16, max_tokens=1)
    driver.add("b", 3, max_tokens=2)
    driver.add("c", 3, max_tokens=2)
    assert driver.step() == "a@0+8[1,2] b@0+3[3] c@0+3[4]"
    assert driver.step() == "a@8+8[4,3] | preempted c b"
    assert driver.waiting == "b c"


def test_nobody_is_admitted_in_a_step_with_preemption() -> None:
    driver = Driver(config(num_blocks=7, enable_prefix_caching=False, long_prefill_token_threshold=8))
    driver.add("a", 8, max_tokens=10)
    driver.add("b", 8, max_tokens=10)
    assert driver.step() == "a@0+8[1,2] b@0+8[3,4]"
    assert driver.steps(4)[0] == "a@8+1[5] b@8+1[6]"
    # b gives up 3 blocks, a takes 1; a first chunk of b would fit the other 2.
    assert driver.step() == "a@12+1[3] | preempted b"
    assert driver.step() == "a@13+1[] b@0+8[4,6] resumed"


def test_a_fully_cached_prompt_computes_its_last_block_again() -> None:
    driver = Driver()
    driver.add("a", range(8), max_tokens=1)
    assert driver.step() == "a@0+8[1,2]"
    driver.add("b", range(8))
    assert driver.step() == "b@4+4[1,3] | finished a"


def test_a_prompt_one_token_longer_hits_all_full_blocks() -> None:
    driver = Driver()
    driver.add("a", range(8), max_tokens=1)
    driver.step()
    driver.add("b", range(9))
    assert driver.step() == "b@8+1[1,2,3] | finished a"


def test_the_oldest_of_equal_blocks_is_hit() -> None:
    driver = Driver(config(max_num_batched_tokens=12))
    driver.add("a", range(8))
    driver.add("b", range(8))
    # b may not hit its last block, so it publishes a second copy of it.
    assert driver.step() == "a@0+8[1,2] b@4+4[1,3]"
    driver.add("c", range(9))
    assert driver.step() == "a@8+1[4] b@8+1[5] c@8+1[1,2,6]"


def test_generated_blocks_are_hit_by_a_follow_up() -> None:
    driver = Driver()
    driver.add("a", range(6), max_tokens=3)
    assert driver.step(sampled={"a": (6,)}) == "a@0+6[1,2]"
    assert driver.step(sampled={"a": (7,)}) == "a@6+1[]"
    assert driver.step(sampled={"a": (8,)}) == "a@7+1[]"
    driver.add("b", range(9))
    assert driver.step() == "b@8+1[1,2,3] | finished a"


def test_evictable_hits_are_no_free_blocks() -> None:
    driver = Driver(config(num_blocks=5))
    driver.add("a", range(8), max_tokens=1)
    driver.step()
    driver.add("b", range(100, 106), max_tokens=2)
    driver.add("c", range(12), max_tokens=1)
    # c hits 2 of the 2 blocks that b leaves free and needs 1 more: 1 > 2 - 2.
    assert driver.step() == "b@0+6[3,4] | finished a"
    assert driver.step() == "b@6+1[]"
    assert driver.step() == "c@8+4[1,2,4] | finished b"


def test_a_hit_on_held_blocks_costs_nothing() -> None:
    driver = Driver(config(num_blocks=5))
    driver.add("a", range(8), max_tokens=3)
    driver.add("b", range(9), max_tokens=1)
    assert driver.step() == "a@0+8[1,2] b@8+1[1,2,3]"


def test_eviction_takes_the_tail_of_a_prefix_first() -> None:
    driver = Driver(config(num_blocks=5))
    driver.add("a", range(12), max_tokens=1)
    assert driver.step() == "a@0+12[1,2,3]"
    assert driver.free == [4, 3, 2, 1]
    driver.add("b", 8, max_tokens=1)
    assert driver.step() == "b@0+8[4,3] | finished a"
    driver.add("c", range(12), max_tokens=1)
    assert driver.step() == "c@8+4[1,2,3] | finished b"


def test_without_caching_blocks_return_in_table_order() -> None:
    driver = Driver(config(num_blocks=5, enable_prefix_caching=False))
    driver.add("a", range(12), max_tokens=1)
    driver.step()
    assert driver.free == [4, 1, 2, 3]
    driver.add("b", range(12), max_tokens=1)
    assert driver.step() == "b@0+12[4,1,2] | finished a"


def test_drafts_accepted_and_rejected() -> None:
    driver = Driver(config(num_speculative_tokens=3))
    driver.add("a", 6)
    assert driver.step(drafts={"a": (1, 2, 3)}) == "a@0+6[1,2]"
    # All accepted: 4 tokens more are known, 3 of them computed.
    assert driver.step(sampled={"a": (1, 2, 3, 4)}, drafts={"a": (5, 6, 7)}) == "a@6+4[3] d(1,2,3)"
    assert driver.computed("a") == 10
    # One accepted: the two others were computed in vain.
    assert driver.step(sampled={"a": (5, 9)}, drafts={"a": (8, 8)}) == "a@10+4[4] d(5,6,7)"
    assert driver.computed("a") == 12
    # The surplus block is used up before another one is taken.
    assert driver.step(sampled={"a": (9,)}) == "a@12+3[] d(8,8)"
    assert driver.computed("a") == 13
    assert driver.step() == "a@13+1[]"


def test_drafts_do_not_publish_a_block() -> None:
    driver = Driver(config(num_speculative_tokens=3))
    driver.add("a", 5)
    driver.step(drafts={"a": (1, 2, 3)})
    assert driver.step(sampled={"a": (1, 2, 7)}) == "a@5+4[3] d(1,2,3)"
    assert driver.published("a") == [True, False, False]
    assert driver.step() == "a@8+1[]"
    assert driver.published("a") == [True, True, False]


def test_budget_trims_drafts() -> None:
    driver = Driver(config(num_speculative_tokens=3, max_num_batched_tokens=6, max_num_seqs=2))
    driver.add("a", 4)
    driver.add("b", 2)
    assert driver.step(drafts={"a": (1, 2, 3), "b": (4, 5, 6)}) == "a@0+4[1] b@0+2[2]"
    assert driver.step(sampled={"a": (1, 9)}) == "a@4+4[3] d(1,2,3) b@2+2[] d(4)"


def test_drafts_survive_a_preemption() -> None:
    driver = Driver(config(num_blocks=5, num_speculative_tokens=2))
    driver.add("a", 7, max_tokens=3)
    driver.add("b", 7, max_tokens=2)
    assert driver.step(drafts={"a": (1, 2), "b": (3, 4)}) == "a@0+7[1,2] b@0+7[3,4]"
    assert driver.step(sampled={"a": (1, 2)}) == "a@7+3[4] d(1,2) | preempted b"
    assert driver.scheduler.live["b"].drafts == (3, 4)
    # An admission schedules known tokens only.
    assert driver.step() == "b@4+4[3,4] resumed | finished a"


def test_published_blocks_stay_published_when_the_budget_cuts_drafts() -> None:
    driver = Driver(config(num_speculative_tokens=3, max_num_batched_tokens=5, max_num_seqs=2))
    driver.add("a", 3)
    driver.add("b", 8)
    assert driver.step() == "a@0+3[1] b@0+2[2]"
    assert driver.step() == "a@3+1[] b@2+4[3]"
    assert driver.step(drafts={"a": (1, 2, 3), "b": (4, 5, 6)}) == "a@4+1[4] b@6+2[]"
    assert driver.published("b") == [True, True]
    # (8 + 1 - 3) // 4 is 1, although 2 blocks are published.
    assert driver.step() == "a@5+4[5] d(1,2,3) b@8+1[6]"
    assert driver.published("b") == [True, True, False]
    driver.steps(3)
    assert driver.computed("b") == 12
    assert driver.published("b") == [True, True, True]


def test_eagle_drops_the_last_hit_and_looks_ahead() -> None:
    driver = Driver(config(num_speculative_tokens=2, use_eagle=True))
    driver.add("a", range(9), max_tokens=1)
    # 9 tokens and 2 lookahead slots.
    assert driver.step() == "a@0+9[1,2,3]"
    driver.add("b", range(10))
    assert driver.step() == "b@4+6[1,4,5] | finished a"
    driver.add("c", range(8))
    # The last-token rule leaves one hit, and the drafter drops that one too.
    assert driver.step() == "b@10+1[6] c@0+8[7,8,9]"


def test_the_table_never_outgrows_the_model() -> None:
    driver = Driver(config(num_speculative_tokens=4, use_eagle=True, max_model_len=8))
    driver.add("a", 7)
    # 7 tokens and 4 lookahead slots want 3 blocks; 8 positions have 2.
    assert driver.step() == "a@0+7[1,2]"
    assert driver.result.finished[0].reason == "length"


def test_grammars_are_skipped_in_order() -> None:
    driver = Driver(config(max_num_seqs=3))
    for name, needs_grammar in (("a", True), ("b", False), ("c", True), ("d", False)):
        driver.add(name, 4, needs_grammar=needs_grammar)
    assert driver.step() == "b@0+4[1] d@0+4[2]"
    assert driver.waiting == "a c"
    driver.scheduler.grammar_ready("c")
    assert driver.step() == "b@4+1[3] d@4+1[4] c@0+4[5]"
    driver.scheduler.grammar_ready("a")
    assert driver.step() == "b@5+1[] d@5+1[] c@4+1[6]"
    assert driver.waiting == "a"


def test_external_tokens_are_loaded_behind_the_hit() -> None:
    driver = Driver(config(use_connector=True))
    driver.add("a", range(4), max_tokens=1)
    driver.step()
    driver.add("b", range(12), external_tokens=10)
    assert driver.step() == "b@10+2[1,2,3] x6 | finished a"
    assert driver.published("b") == [True, True, True]
    driver.add("c", 6, external_tokens=0)
    assert driver.step() == "b@12+1[4] c@0+6[5,6]"


def test_prompt_logprobs_read_no_cache_but_publish() -> None:
    driver = Driver()
    driver.add("a", range(9), max_tokens=1, prompt_logprobs=True)
    driver.add("b", range(9), max_tokens=1, prompt_logprobs=True)
    driver.add("c", range(9), max_tokens=1)
    assert driver.step() == "a@0+9[1,2,3] b@0+9[4,5,6] c@8+1[1,2,7]"


def test_an_item_is_encoded_once_for_all_its_chunks() -> None:
    driver = Driver(config(max_num_batched_tokens=4, max_num_seqs=2, **ENCODER))
    driver.add("a", 12, items=[(2, 6, 70)])
    assert driver.step() == "a@0+4[1] i(0)"
    assert driver.step() == "a@4+4[2]"
    # Item 0 ends at position 8: its embeddings have been read.
    assert driver.step() == "a@8+4[3] | freed a.0"


def test_items_wait_for_the_encoder_budget() -> None:
    driver = Driver(config(max_num_encoder_input_tokens=6, encoder_cache_size=20))
    driver.add("a", 12, items=[(1, 4, 70), (6, 4, 71)])
    assert driver.step() == "a@0+6[1,2] i(0)"
    assert driver.step() == "a@6+6[3] i(1) | freed a.0"


def test_items_chosen_before_count_against_the_cache() -> None:
    driver = Driver(config(max_num_encoder_input_tokens=20, encoder_cache_size=6))
    driver.add("a", 12, items=[(1, 4, 70), (6, 4, 71)])
    assert driver.step() == "a@0+6[1,2] i(0)"


def test_an_item_without_room_stops_admission() -> None:
    driver = Driver(config(max_num_encoder_input_tokens=8, encoder_cache_size=4))
    driver.add("a", 8, items=[(0, 4, 70)])
    driver.add("b", 8, items=[(0, 4, 71)])
    driver.add("c", 4)
    assert driver.step() == "a@0+8[1,2] i(0)"
    assert driver.step() == "a@8+1[3] b@0+8[4,5] i(0) c@0+4[6] | freed a.0"


def test_a_running_request_without_room_is_passed_over() -> None:
    driver = Driver(config(max_num_encoder_input_tokens=4, encoder_cache_size=8, long_prefill_token_threshold=4))
    driver.add("a", 8, items=[(4, 4, 70)])
    driver.add("b", 8, items=[(4, 4, 71)])
    driver.add("c", 5)
    assert driver.step() == "a@0+4[1] b@0+4[2] c@0+4[3]"
    assert driver.step() == "a@4+4[4] i(0) c@4+1[5]"
    assert driver.step() == "a@8+1[6] b@4+4[7] i(0) c@5+1[] | freed a.0"


def test_whole_items_are_not_cut() -> None:
    driver = Driver(config(max_num_batched_tokens=6, max_num_seqs=2, disable_chunked_mm_input=True, **ENCODER))
    driver.add("a", 12, items=[(4, 6, 70)])
    assert driver.step() == "a@0+4[1]"
    assert driver.step() == "a@4+6[2,3] i(0)"


def test_whole_items_are_not_cut_where_a_chunk_begins_with_them() -> None:
    driver = Driver(config(max_num_batched_tokens=6, max_num_seqs=2, disable_chunked_mm_input=True, **ENCODER))
    driver.add("b", 3)
    driver.add("a", 8, items=[(0, 4, 70)])
    # 3 tokens of the budget are left for an item of 4.
    assert driver.step() == "b@0+3[1]"
    assert driver.step() == "b@3+1[] a@0+5[2,3] i(0)"


def test_a_hit_inside_an_item_encodes_it_again() -> None:
    driver = Driver(config(**ENCODER))
    driver.add("a", range(8), max_tokens=1, items=[(2, 4, 70)])
    assert driver.step() == "a@0+8[1,2] i(0)"
    driver.add("b", [0, 1, 2, 3, 4, 5, 9], items=[(2, 4, 70)])
    assert driver.step() == "b@4+3[1,3] i(0) | finished a | freed a.0"


def test_other_content_is_no_hit() -> None:
    driver = Driver(config(max_loras=2, **ENCODER))
    driver.add("a", range(9), max_tokens=1, items=[(4, 2, 70)])
    driver.add("b", range(9), max_tokens=1, items=[(4, 2, 71)])
    driver.add("c", range(9), max_tokens=1, lora_id=1)
    assert driver.step() == "a@0+9[1,2,3] i(0) b@4+5[1,4,5] i(0) c@0+9[6,7,8]"


def test_a_preempted_request_gives_its_items_back() -> None:
    driver = Driver(config(num_blocks=4, long_prefill_token_threshold=4, **ENCODER))
    driver.add("b", 8, max_tokens=1)
    driver.add("a", 8, max_tokens=1, items=[(0, 8, 70)])
    assert driver.step() == "b@0+4[1] a@0+4[2] i(0)"
    driver.add("c", 4, max_tokens=1)
    assert driver.step() == "b@4+4[3] | preempted a | freed a.0"
    assert driver.scheduler.encoder_cache.free_tokens == 20
    assert driver.step() == "a@4+4[2,3] resumed i(0) c@0+4[1] | finished b"
