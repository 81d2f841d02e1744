"""Short constructors for the tests, and all that a state holds, as one comparable value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spec.allocation import Step
from spec.state import Live, State
from spec.validity import check_config, check_request
from spec.vocabulary import PROFILES, Admission, Config, Grant, Profile, Request, StepPlan
from spec.waiting import admit_one

PROFILE = PROFILES["vllm-0.8.5"]
SMALL = Config(num_blocks=9, block_size=4, max_num_batched_tokens=64, max_num_seqs=8, max_model_len=32)
ENCODER: dict[str, Any] = {"max_num_encoder_input_tokens": 8, "encoder_cache_size": 8}
DRAFTS: dict[str, Any] = {"num_speculative_tokens": 2}
EAGLE: dict[str, Any] = {"num_speculative_tokens": 2, "use_eagle": True}


def config(**changes: Any) -> Config:
    """Eight usable blocks of four tokens, with room for everything else."""
    return check_config(replace(SMALL, **changes))


def request(name: str = "a", prompt: int | Sequence[int] = 4, max_tokens: int = 4, **changes: Any) -> Request:
    """A prompt given as a length has words that no request of another name uses."""
    words = range(1000 * ord(name[-1]), 1000 * ord(name[-1]) + prompt) if isinstance(prompt, int) else prompt
    return Request(name, tuple(words), max_tokens, eos_token_id=0, **changes)


def state(*requests: Request, profile: Profile = PROFILE, **changes: Any) -> State:
    """A state in which the requests wait, in this order."""
    built = State(config(**changes), profile)
    for each in requests:
        check_request(each, built.config)
        built.live[each.request_id] = Live(each, built.config.max_model_len)
        built.waiting.append(built.live[each.request_id])
    return built


def admitted(*requests: Request, profile: Profile = PROFILE, **changes: Any) -> State:
    """A state in which the requests run, their prompts computed."""
    built = state(*requests, profile=profile, **changes)
    step = Step(built.config)
    for each in requests:
        assert admit_one(built, step) is None
        built.live[each.request_id].computed += step.grants[-1].tokens
    built.log.clear()
    return built


def sample(built: State, name: str, *tokens: int) -> Live:
    """Appends output tokens, as a commit does."""
    live = built.live[name]
    live.tokens.extend(tokens)
    live.known += len(tokens)
    return live


def grant(name: str, start: int, tokens: int, blocks: Sequence[int] = (), **rest: Any) -> Grant:
    """A grant of a running request, unless `admission` says otherwise."""
    return Grant(name, rest.pop("admission", Admission.RUNNING), start, tokens, tuple(blocks), **rest)


def new(name: str, start: int, tokens: int, blocks: Sequence[int], **rest: Any) -> Grant:
    return grant(name, start, tokens, blocks, admission=Admission.NEW, **rest)


def resumed(name: str, start: int, tokens: int, blocks: Sequence[int], **rest: Any) -> Grant:
    return grant(name, start, tokens, blocks, admission=Admission.RESUMED, **rest)


def plan(*grants: Grant, **rest: Any) -> StepPlan:
    return StepPlan(grants, **rest)


def names(lives: Sequence[Live]) -> list[str]:
    return [live.request.request_id for live in lives]


def snapshot(built: State) -> dict[str, object]:
    """Everything a state holds but its log, orders included."""
    lives = {
        name: (
            live.status,
            live.grammar_ready,
            tuple(live.tokens),
            live.known,
            live.computed,
            live.drafts,
            tuple(live.table),
            live.published,
            tuple(live.keys),
            frozenset(live.cached),
        )
        for name, live in built.live.items()
    }
    return {
        "refs": tuple(built.pool.refs),
        "free": tuple(built.pool.free),
        "key_of": dict(built.pool.key_of),
        "holders": {key: tuple(blocks) for key, blocks in built.pool.holders.items()},
        "key_table": dict(built.key_table),
        "live": lives,
        "running": names(built.running),
        "waiting": names(list(built.waiting)),
        "encoder_free": built.encoder_free,
        "finished": tuple(built.finished),
        "freed": tuple(built.freed),
    }
