"""Generated runs under pressure, carried out on tensors, over block sizes, head layouts and head sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.generate import Author, Draw, Seeded, draw_config, draw_event
from conformance.lockstep import Ended, Judge
from conformance.protocol import Implementation, needs
from gpu_check.inspector import Inspector
from gpu_check.relabel import high, permuted, relabelled
from gpu_check.runs import MEETINGS, Setting, TensorSession
from reference.model_config import ModelConfig
from spec.vocabulary import Config, StepPlan

SEEDS = range(8)
RUNS_PER_SEED = 3
LAYOUTS = ((4, 4), (8, 2), (9, 3))
HEAD_SIZES = (40, 64, 80, 128, 256)


def walk(
    draw: Draw,
    config: Config,
    events: int,
    implementation: Implementation,
    judge: Judge,
    setting: Setting,
    relabel: Callable[[StepPlan], StepPlan] = lambda plan: plan,
) -> TensorSession:
    """A run of so many events, or up to where a known deviation ends it."""
    author = Author(config, implementation.capabilities)
    session = TensorSession(implementation, config, judge, Inspector(setting.executor(config)), relabel)
    try:
        for _ in range(events):
            session.apply(draw_event(draw, author, session.observer))
    except Ended:
        pass
    return session


def pressed(block_size: int, **features: int | bool) -> Config:
    """A pool of one and a half requests, whose prompts cross a few block boundaries."""
    longest = max(3 * block_size + 2, 24)
    usable = -(-longest * 3 // (2 * block_size))
    return Config(usable + 1, block_size, longest // 2 + 4, 4, longest, **features)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", SEEDS)
def test_any_configuration(
    seed: int,
    dtype: str,
    implementation: Implementation,
    judge: Judge,
    setting: Setting,
    sessions: list[TensorSession],
) -> None:
    """Tiny ones with every feature that the implementation has: drafts, adapters, items, external tokens."""
    draw = Seeded(f"tensors {seed}")
    for _ in range(RUNS_PER_SEED):
        config = draw_config(draw, implementation.capabilities)
        sessions.append(walk(draw, config, 60, implementation, judge, replace(setting, dtype=dtype, pad_to=3)))


@pytest.mark.parametrize("block_size", [1, 16, 32, 128])
@pytest.mark.parametrize("drafts", [0, 3])
def test_block_sizes(
    block_size: int,
    drafts: int,
    dtype: str,
    implementation: Implementation,
    judge: Judge,
    setting: Setting,
    sessions: list[TensorSession],
) -> None:
    config = pressed(block_size, num_speculative_tokens=drafts)
    if missing := needs(config) - implementation.capabilities:
        pytest.skip(f"unsupported: {', '.join(sorted(missing))}")
    draw = Seeded(f"blocks {block_size} {drafts}")
    sessions.append(walk(draw, config, 60, implementation, judge, replace(setting, dtype=dtype)))


SHAPES = [(heads, kv_heads, size) for heads, kv_heads in LAYOUTS for size in HEAD_SIZES]


@pytest.mark.parametrize(("heads", "kv_heads", "head_size"), SHAPES)
def test_heads(
    heads: int,
    kv_heads: int,
    head_size: int,
    dtype: str,
    implementation: Implementation,
    judge: Judge,
    setting: Setting,
    sessions: list[TensorSession],
) -> None:
    model = ModelConfig(heads=heads, kv_heads=kv_heads, head_size=head_size)
    chosen = replace(setting, dtype=dtype, model=model)
    sessions.append(walk(Seeded("heads"), pressed(16), 24, implementation, judge, chosen))


NAMINGS = ("permuted", "high ids", "higher ids")


@pytest.mark.parametrize("naming", NAMINGS)
def test_block_ids_do_not_matter(
    naming: str, dtype: str, implementation: Implementation, judge: Judge, setting: Setting
) -> None:
    """Bit for bit, on the same kernels: ids shuffled, and only the last ones of pools of 2,048 and 32,768 blocks."""
    if naming == "higher ids" and dtype != "bfloat16":
        pytest.skip("one type is enough for a large pool")
    config, plain = pressed(16), replace(setting, dtype=dtype)
    pool = {"permuted": config.num_blocks, "high ids": 2048, "higher ids": 32768}[naming]
    names = permuted(pool, seed=1) if naming == "permuted" else high(config.num_blocks, pool)
    told: list[list[float]] = []
    for chosen, relabel in ((plain, lambda plan: plan), (replace(plain, blocks=pool), relabelled(names))):
        logits: list[float] = []
        session = _recorded(logits, config, implementation, judge, chosen, relabel)
        assert session.steps > 10
        told.append(logits)
    assert told[0] == told[1]


def _recorded(
    logits: list[float],
    config: Config,
    implementation: Implementation,
    judge: Judge,
    setting: Setting,
    relabel: Callable[[StepPlan], StepPlan],
) -> TensorSession:
    """A run that also leaves all its logits in a list."""
    draw, author = Seeded("names"), Author(config, implementation.capabilities)
    session = TensorSession(implementation, config, judge, Inspector(setting.executor(config)), relabel)
    for _ in range(60):
        session.inspector.sampled = {}
        session.apply(draw_event(draw, author, session.observer))
        for sampling in session.inspector.sampled.values():
            logits.extend(sampling.logits.double().flatten().tolist())
    return session


def test_the_runs_meet_what_they_are_for(implementation: Implementation, judge: Judge, setting: Setting) -> None:
    """Otherwise the tests above would check too little."""
    met: Counter[str] = Counter()
    for seed in SEEDS:
        draw = Seeded(f"tensors {seed}")
        for _ in range(RUNS_PER_SEED):
            config = draw_config(draw, implementation.capabilities)
            met += walk(draw, config, 60, implementation, judge, replace(setting, pad_to=3)).met
    missing = set(MEETINGS) - set(+met)
    if "speculation" not in implementation.capabilities:
        missing -= {"drafts rejected", "drafts all accepted"}
    assert not missing, f"met: {dict(met)}"
