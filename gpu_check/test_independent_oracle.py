"""An oracle that is not ours: transformers' Llama from a random config, with our weights, in float64.

As it is it agrees to 1e-7 only: its RMSNorm and its rotary angles are computed in float32 whatever the model is made
of.  With torch's RMSNorm and angles in float64 in their place, everything else its own, it agrees to 1e-12.
"""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_check.oracle import Oracle
from gpu_check.test_text import prompts
from reference.engine import Engine
from reference.executor import Sampling
from reference.model_config import ModelConfig
from reference.weights import random_weights
from spec.vocabulary import Config, StepPlan

transformers: Any = pytest.importorskip("transformers", reason="pip install 'schedspec[oracle]'")

TOLERANCE = 1e-12
MODEL = ModelConfig(seed=5)
NAMES = (
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
"""Our layer's matrices, in order, by the names that transformers gives them."""


class Float64Angles(torch.nn.Module):  # type: ignore[misc]
    """The rotary angles of positions, in float64."""

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        half = torch.arange(0, MODEL.head_size, 2, dtype=torch.float64)
        angles = position_ids[..., None].double() * MODEL.rope_theta ** (-half / MODEL.head_size)
        both = torch.cat((angles, angles), -1)
        return both.cos(), both.sin()


def llama(*, wide: bool) -> Any:
    """The model of transformers with our weights; `wide` replaces what it computes in float32."""
    weights = random_weights(MODEL)
    config = transformers.LlamaConfig(
        vocab_size=MODEL.vocabulary,
        hidden_size=MODEL.hidden,
        intermediate_size=MODEL.ffn,
        num_hidden_layers=MODEL.layers,
        num_attention_heads=MODEL.heads,
        num_key_value_heads=MODEL.kv_heads,
        head_dim=MODEL.head_size,
        rms_norm_eps=MODEL.norm_eps,
        rope_theta=MODEL.rope_theta,
        tie_word_embeddings=False,
        attn_implementation="sdpa",
    )
    with contextlib.redirect_stderr(io.StringIO()):
        model = transformers.LlamaForCausalLM(config).double().eval()
    values = {
        "model.embed_tokens.weight": weights.embedding[: MODEL.vocabulary],
        "model.norm.weight": weights.norm,
        "lm_head.weight": weights.head,
    }
    for number, layer in enumerate(weights.layers):
        values |= {f"model.layers.{number}.{name}.weight": part for name, part in zip(NAMES, layer, strict=True)}
    if wide:
        model.model.rotary_emb = Float64Angles()
        for parent in (*model.model.layers, model.model):
            for name in ("input_layernorm", "post_attention_layernorm", "norm"):
                if hasattr(parent, name):
                    setattr(parent, name, torch.nn.RMSNorm(MODEL.hidden, MODEL.norm_eps, dtype=torch.float64))
    model.load_state_dict(values)
    return model


def logits(model: Any, text: list[int]) -> Tensor:
    with torch.inference_mode():
        return model(torch.tensor([text])).logits[0]


def test_the_dense_oracle_agrees() -> None:
    oracle, model = Oracle(MODEL, random_weights(MODEL), exact=True), llama(wide=True)
    for request in prompts(5, 40):
        text = list(request.prompt_token_ids)
        worst = (oracle.run(request, text).logits - logits(model, text)).abs().max().item()
        assert worst <= TOLERANCE


def test_the_paged_engine_agrees_under_pressure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every logit that is sampled from, over preemptions and rejected drafts."""
    engine = Engine(MODEL, Config(13, 4, 24, 6, 32, num_speculative_tokens=3), "cpu", "float64")
    model, execute = llama(wide=True), engine.executor.execute
    worst, compared = 0.0, 0

    def compare(plan: StepPlan) -> dict[str, Sampling]:
        nonlocal worst, compared
        found = execute(plan)
        for request_id, sampling in found.items():
            text = [*engine.executor.held[request_id].tokens, *sampling.drafts]
            due = logits(model, text)[-len(sampling.logits) :]
            worst = max(worst, (sampling.logits - due).abs().max().item())
            compared += len(due)
        return found

    monkeypatch.setattr(engine.executor, "execute", compare)
    engine.generate(prompts(14, 18))
    assert compared > 50
    assert worst <= TOLERANCE


def test_as_it_is_it_computes_in_float32() -> None:
    """The reason for the replacements: should a release do better, they can go."""
    text = list(prompts(1, 40)[0].prompt_token_ids)
    apart = (logits(llama(wide=False), text) - logits(llama(wide=True), text)).abs().max().item()
    assert TOLERANCE < apart < 1e-5
