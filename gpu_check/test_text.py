"""The text generated under pressure equals the text generated one request at a time with dense attention.

Under any scheduler: the oracle is asked first what the model says to each request alone; that becomes the script, and
every token that the paged engine samples on the way must be the same one.  And freely, by the engine itself.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.generate import Author, Seeded, draw_event
from conformance.lockstep import Ended, Judge
from conformance.protocol import Implementation, needs
from gpu_check.inspector import Inspector
from gpu_check.oracle import Oracle, greedy_text
from gpu_check.runs import Setting, TensorSession, speak
from gpu_check.test_generated import pressed
from reference.engine import Engine
from reference.model_config import ModelConfig
from spec.events import StepEvent
from spec.vocabulary import Admission, Config, Request

MODEL = ModelConfig(seed=3)
SURE = ("float64", "float32")
"""Types in which no token of these runs is too close to call."""

FEATURES: dict[str, dict[str, int | bool]] = {
    "plain": {},
    "caching off": {"enable_prefix_caching": False},
    "drafts": {"num_speculative_tokens": 3},
    "adapters": {"max_loras": 2},
    "items": {"max_num_encoder_input_tokens": 8, "encoder_cache_size": 8},
}


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("block_size", [1, 3, 16])
def test_under_any_scheduler(
    features: str,
    block_size: int,
    dtype: str,
    implementation: Implementation,
    judge: Judge,
    setting: Setting,
    sessions: list[TensorSession],
) -> None:
    config = pressed(block_size, **FEATURES[features])
    if missing := needs(config) - implementation.capabilities:
        pytest.skip(f"unsupported: {', '.join(sorted(missing))}")
    inspector = Inspector(replace(setting, dtype=dtype, model=MODEL).executor(config))
    session = TensorSession(implementation, config, judge, inspector)
    draw, author = Seeded(f"text {features} {block_size}"), Author(config, implementation.capabilities)
    try:
        for _ in range(40):
            event = draw_event(draw, author, session.observer)
            session.apply(speak(event, config, inspector.numbers.exact))
        while session.observer.running:
            session.apply(StepEvent())
    except Ended:
        pass
    sessions.append(session)
    numbers = inspector.numbers
    assert numbers.tokens_compared > 0
    if dtype in SURE:
        assert numbers.tokens_unsure == 0, "a token that is too close to call was not compared"


# --- the engine, sampling for itself -------------------------------------------------------------


def prompts(count: int, longest: int) -> list[Request]:
    """Prompts that share prefixes, the same for every run."""
    draw = Seeded("prompts")
    shared = [draw.integer(1, 90) for _ in range(longest)]
    found = []
    for number in range(count):
        cut, length = draw.integer(0, longest), draw.integer(1, longest)
        text = [*shared[:cut], *(draw.integer(1, 90) for _ in range(longest))][:length]
        found.append(Request(f"r{number}", tuple(text), max_tokens=draw.integer(1, 12), ignore_eos=True))
    return found


@pytest.mark.parametrize("drafts", [0, 4])
def test_the_engine_alone(dtype: str, drafts: int, setting: Setting) -> None:
    """A pool of one and a half requests: there are preemptions, and drafts are rejected and accepted."""
    if dtype not in SURE:
        pytest.skip(f"in {dtype} two tokens may be too close to call, and the texts part there")
    config = Config(13, 4, 24, 6, 32, num_speculative_tokens=drafts)
    requests = prompts(14, 18)
    engine = Engine(MODEL, config, setting.device, dtype, setting.attention)
    for request in requests:
        engine.add(request)
    preempted = resumed = verified = accepted = 0
    while engine.busy:
        plan, result = engine.step()
        preempted += len(plan.preempted)
        resumed += sum(grant.admission is Admission.RESUMED for grant in plan.grants)
        emitted = dict(result.emitted)
        for grant in plan.grants:
            verified += len(grant.drafts)
            accepted += max(len(emitted.get(grant.request_id, ())) - 1, 0)
    assert preempted
    assert resumed
    assert not drafts or 0 < accepted < verified
    oracle = Oracle(MODEL, engine.executor.model.weights, exact=True)
    alone = {request.request_id: list(greedy_text(oracle, request, request.max_tokens)) for request in requests}
    assert engine.texts == alone
