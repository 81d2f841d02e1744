"""The invariant and the counting lemmas on runs of the spec: what is assumed of a symbolic state holds of real ones."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from spec.model import Script, answer
from spec.observer import Observer
from spec.scheduler import Oracle
from spec.state import Live, State
from spec.vocabulary import PROFILES, Config, Request, Status


def check_pool(state: State) -> None:
    """COUNT, KEY and the lemmas SET, MEMBERS, PARTITION, REFERENCES."""
    pool = state.pool
    usable = range(1, state.config.num_blocks)
    occurrences = Counter(block for live in state.live.values() for block in live.table)
    assert [pool.refs[block] for block in usable] == [occurrences[block] for block in usable]
    assert set(pool.free) == {block for block in usable if pool.refs[block] == 0}
    assert len(pool.free) + sum(pool.refs[block] > 0 for block in usable) == len(usable)
    assert pool.refs[0] == 0
    assert {(key, block) for key, blocks in pool.holders.items() for block in blocks} == {
        (key, block) for block, key in pool.key_of.items()
    }
    assert all(pool.holders.values())


def check_request(state: State, live: Live) -> None:
    """COVER, LENGTH, KEY, WRITE, PREEMPTED of one request between two steps."""
    size, longest = state.config.block_size, state.config.max_model_len
    if live.status is not Status.RUNNING:
        assert (live.table, live.computed, live.published) == ([], 0, 0)
        return
    assert live.computed <= len(live.table) * size
    assert 0 <= live.computed < live.known < live.limit <= longest
    assert (len(live.table) - 1) * size < longest
    assert live.published <= len(live.table)
    assert live.published * size <= live.computed
    assert live.published <= len(live.keys) or not state.config.enable_prefix_caching
    assert len(set(live.table)) == len(live.table)
    for place, block in enumerate(live.table):
        assert live.table.index(block) == place
        if place < live.published:
            assert state.pool.key_of[block] == live.keys[place]
        else:
            assert state.pool.refs[block] == 1
            assert block not in state.pool.key_of


@pytest.mark.parametrize("seed", range(40))
def test_the_invariant_holds_on_runs(seed: int) -> None:
    chance = random.Random(seed)
    drafts, size = chance.choice((0, 0, 2)), chance.randint(1, 4)
    config = Config(
        num_blocks=24 // size + chance.randint(2, 6),  # every request fits alone, not all of them together
        block_size=size,
        max_num_batched_tokens=chance.randint(4, 16),
        max_num_seqs=4,
        max_model_len=24,
        long_prefill_token_threshold=chance.choice((0, 3)),
        enable_prefix_caching=chance.random() < 0.8,
        num_speculative_tokens=drafts,
        use_eagle=bool(drafts) and chance.random() < 0.5,
    )
    oracle, observer, scripts = Oracle(config, PROFILES["vllm-0.8.5"]), Observer(config), {}
    granted = 0
    for number in range(60):
        prompt = tuple(chance.randint(0, 1) for _ in range(chance.randint(1, 12)))
        request = Request(f"r{number}", prompt, chance.randint(1, 8))
        script = Script(drafts=((drafts, chance.randint(0, 2)),) if drafts else ())
        if len(oracle.state.live) < 6:
            oracle.add(request)
            observer.add(request)
            scripts[request.request_id] = script
        plan = oracle.schedule()
        granted += len(plan.grants)
        check_pool(oracle.state)
        step = observer.apply(plan)
        output = answer(config, observer, scripts, plan)
        observer.settle(step, output, oracle.commit(plan, output))
        check_pool(oracle.state)
        for live in oracle.state.live.values():
            check_request(oracle.state, live)
    assert granted > 20
