"""The invariant, the lemmas and the ranking of PROGRESS on runs of the spec: what is proved holds of real states."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import z3

from spec import recount, scheduler, waiting
from spec.allocation import Step
from spec.model import Script, answer
from spec.observer import Observer
from spec.proofs import lemmas
from spec.proofs.cases import progress
from spec.proofs.state import numbers
from spec.scheduler import Oracle
from spec.state import Live, State
from spec.tests.build import admitted, request
from spec.vocabulary import PROFILES, Config, EncoderItem, Request, Status


def check_request(state: State, live: Live) -> None:
    """COVER, LENGTH, KEY, WRITE, PREEMPTED of one request between two steps."""
    size, longest = state.config.block_size, state.config.max_model_len
    if live.status is not Status.RUNNING:
        assert (live.table, live.computed, live.published, live.cached) == ([], 0, 0, set())
        return
    assert live.computed <= len(live.table) * size
    assert 0 <= live.computed < live.known < live.limit <= longest
    assert (len(live.table) - 1) * size < longest
    assert live.published * size <= live.computed
    assert live.published <= len(live.keys) or not state.config.enable_prefix_caching
    assert len(set(live.table)) == len(live.table)
    for place, block in enumerate(live.table):
        if place < live.published:
            assert state.pool.key_of[block] == live.keys[place]
        else:
            assert state.pool.refs[block] == 1
            assert block not in state.pool.key_of


def steps_left(state: State) -> dict[str, int]:
    """`progress.steps_left` of every request."""
    line = [*state.running, *state.waiting]
    rank = (line[0].limit - line[0].known, line[0].known - line[0].computed) if line else (0, 0)
    longest = state.config.max_model_len
    return {live.request.request_id: progress.steps_left(longest, place, rank) for place, live in enumerate(line)}


def draw_config(chance: random.Random) -> Config:
    drafts, size = chance.choice((0, 0, 2)), chance.randint(1, 4)
    encoder = chance.choice((0, 6))
    return Config(
        num_blocks=24 // size + chance.randint(2, 6),  # every request fits alone, not all of them together
        block_size=size,
        max_num_batched_tokens=chance.randint(4, 16),
        max_num_seqs=4,
        max_model_len=24,
        long_prefill_token_threshold=chance.choice((0, 3)),
        enable_prefix_caching=chance.random() < 0.8,
        num_speculative_tokens=drafts,
        use_eagle=bool(drafts) and chance.random() < 0.5,
        max_loras=chance.choice((0, 1)),
        max_num_encoder_input_tokens=encoder,
        encoder_cache_size=encoder,
    )


def draw_request(chance: random.Random, name: str, config: Config) -> Request:
    prompt = tuple(chance.randint(0, 1) for _ in range(chance.randint(1, 12)))
    items: tuple[EncoderItem, ...] = ()
    if config.encoder_cache_size and len(prompt) > 4:
        items = (EncoderItem(chance.randint(0, 2), 2, chance.randint(0, 1)),)
    lora = chance.randint(0, 2) if config.max_loras else 0
    return Request(name, prompt, chance.randint(1, 8), items=items, lora_id=lora)


@pytest.mark.parametrize("seed", range(40))
def test_the_invariant_holds_on_runs(seed: int) -> None:
    chance = random.Random(seed)
    config = draw_config(chance)
    oracle, observer, scripts = Oracle(config, PROFILES["vllm-0.8.5"]), Observer(config), {}
    granted = 0
    for number in range(60):
        asked = draw_request(chance, f"r{number}", config)
        proposals = config.num_speculative_tokens
        script = Script(drafts=((proposals, chance.randint(0, 2)),) if proposals else ())
        if len(oracle.state.live) < 6:
            oracle.add(asked)
            observer.add(asked)
            scripts[asked.request_id] = script
        before = steps_left(oracle.state)
        plan = oracle.schedule()
        granted += len(plan.grants)
        assert recount.recount(oracle.state) == []
        step = observer.apply(plan)
        output = answer(config, observer, scripts, plan)
        observer.settle(step, output, oracle.commit(plan, output))
        assert recount.recount(oracle.state) == []
        for live in oracle.state.live.values():
            check_request(oracle.state, live)
        if not config.max_loras and not config.encoder_cache_size:  # nobody is set aside, no item is waited for
            assert all(1 <= now < before[name] for name, now in steps_left(oracle.state).items())
    assert granted > 20


# --- what a micro-step is promised to do to the numbers of a step ----------------------------------


def count(state: State, step: Step) -> numbers.Numbers:
    """The numbers of a step that runs on ints, as terms."""
    queues = (state.running, state.waiting, step.skipped)
    tokens = sum(each.tokens for each in step.grants)
    found = (*map(len, queues), step.index, len(step.preempted), step.budget, len(step.grants), tokens)
    return numbers.Numbers(*map(z3.IntVal, found))


Promise = Callable[[State, numbers.Numbers, numbers.Numbers, Any], dict[str, Any]]

PROMISES: dict[str, Promise] = {
    "visit_one_running": lambda state, before, now, _: numbers.visited(before, now),
    "examine_one": lambda state, before, now, passed: numbers.examined(before, now, passed),
    "admit_one": lambda state, before, now, refusal: numbers.admitted(state, before, now, refusal is None),
}


def watch(function: str, real: Callable[..., Any], broken: list[str], seen: list[str]) -> Callable[..., Any]:
    """The function; what it breaks of its promise is noted."""

    def watched(state: State, step: Step) -> Any:
        before = count(state, step)
        answer = real(state, step)
        promise = PROMISES[function](state, before, count(state, step), answer)
        broken.extend(name for name, holds in promise.items() if not z3.is_true(z3.simplify(holds)))
        seen.append(function)
        return answer

    return watched


def broken_promises(monkeypatch: pytest.MonkeyPatch, seeds: range) -> tuple[list[str], set[str]]:
    broken: list[str] = []
    seen: list[str] = []
    for function in PROMISES:
        monkeypatch.setattr(scheduler, function, watch(function, getattr(scheduler, function), broken, seen))
    for seed in seeds:
        test_the_invariant_holds_on_runs(seed)
    return broken, set(seen)


def test_micro_steps_keep_their_promises_on_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_promises(monkeypatch, range(8)) == ([], set(PROMISES))


def test_a_broken_promise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = waiting.admit_one

    def uncharged(state: State, step: Step) -> Any:
        budget = step.budget
        answer = real(state, step)
        step.budget = budget
        return answer

    monkeypatch.setattr(scheduler, "admit_one", uncharged)
    broken, _ = broken_promises(monkeypatch, range(1))
    assert "BUDGET: what is granted is charged" in broken


# --- the lemmas ----------------------------------------------------------------------------------


def full() -> State:
    return admitted(request("a", 31))


def one_free() -> State:
    return admitted(request("a", 28))


def three_tables() -> State:
    return admitted(request("a"), request("b", 8), request("c", 12))


def two_tables() -> State:
    return admitted(request("a", 8), request("b"))


def twice() -> State:
    """A table that holds a block twice: the scheduler never gets there, but every count is right."""
    state = two_tables()
    block = state.live["a"].table[0]
    state.live["a"].table.append(block)
    state.pool.refs[block] += 1
    return state


STATES: tuple[Callable[[], State], ...] = (full, one_free, two_tables, three_tables, twice)


def noticed() -> set[str]:
    return {violation.signature for make in STATES for violation in recount.recount(make())}


@pytest.mark.parametrize(
    ("lemma", "function", "wrong"),
    [pytest.param(lemma, function, wrong, id=what) for lemma, function, what, wrong in lemmas.WRONG],
)
def test_a_wrong_lemma_is_noticed_on_runs(
    lemma: str, function: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recount, "_remembered_blocks", recount._blocks)
    monkeypatch.setattr(recount, "_remembered_list", recount._list)
    assert noticed() == set()
    monkeypatch.setattr(recount, function, wrong)
    assert noticed() == {lemma}
