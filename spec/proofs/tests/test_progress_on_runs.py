"""The ranking of PROGRESS on runs of the spec: the bound on the steps of every request falls in every step."""

from __future__ import annotations

import random

import pytest

from spec.model import Script, answer
from spec.observer import Observer
from spec.scheduler import Oracle
from spec.state import State
from spec.vocabulary import PROFILES, Config, Request


def steps_left(state: State) -> dict[str, int]:
    """As `progress.steps_left`, of every request, on ints."""
    most = state.config.max_model_len + 1
    line = [*state.running, *state.waiting]
    if not line:
        return {}
    head = line[0]
    rank = (head.limit - head.known) * most + head.known - head.computed
    return {live.request.request_id: place * most * most + rank + 1 for place, live in enumerate(line)}


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_falls_in_every_step(seed: int) -> None:
    chance = random.Random(seed)
    drafts, size = chance.choice((0, 0, 2)), chance.randint(1, 4)
    config = Config(
        num_blocks=24 // size + chance.randint(2, 6),  # every request fits alone, not all of them together
        block_size=size,
        max_num_batched_tokens=chance.randint(2, 16),
        max_num_seqs=chance.randint(1, 4),
        max_model_len=24,
        long_prefill_token_threshold=chance.choice((0, 3)),
        enable_prefix_caching=chance.random() < 0.8,
        num_speculative_tokens=drafts,
        use_eagle=bool(drafts) and chance.random() < 0.5,
    )
    oracle, observer, scripts = Oracle(config, PROFILES["vllm-0.8.5"]), Observer(config), {}
    preempted = 0
    for number in range(60):
        if number < 40 and len(oracle.state.live) < 6:
            request = Request(
                f"r{number}", tuple(chance.choices((0, 1), k=chance.randint(1, 12))), chance.randint(1, 8)
            )
            oracle.add(request)
            observer.add(request)
            scripts[request.request_id] = Script(drafts=((drafts, chance.randint(0, 2)),) if drafts else ())
        before = steps_left(oracle.state)
        plan = oracle.schedule()
        preempted += len(plan.preempted)
        step = observer.apply(plan)
        output = answer(config, observer, scripts, plan)
        observer.settle(step, output, oracle.commit(plan, output))
        for request_id, now in steps_left(oracle.state).items():
            assert 1 <= now < before[request_id], request_id
    assert plan.grants or not oracle.state.live
    assert seed or preempted
