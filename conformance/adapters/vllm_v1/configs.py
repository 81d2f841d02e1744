"""The real configuration objects of vLLM, made from one `Config`.

vLLM validates one `VllmConfig` for each combination of features that is asked for; a scheduler
gets a shallow copy of it with its own numbers, so that making thousands of them stays cheap.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    KVTransferConfig,
    LoRAConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    SpeculativeConfig,
    VllmConfig,
)
from vllm.model_executor.models import ModelRegistry
from vllm.model_executor.models.llama import LlamaForCausalLM
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec

from conformance.adapters.vllm_v1.connector import NAME as CONNECTOR
from spec.vocabulary import Config

TINY_LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_attention_heads": 1,
    "num_hidden_layers": 1,
    "num_key_value_heads": 1,
    "vocab_size": 128,
    "max_position_embeddings": 1 << 24,
    "torch_dtype": "float32",
}

VALIDATED_BLOCK_SIZE = 16
"""The one block size that vLLM's CPU platform accepts."""


def engine_config(config: Config) -> VllmConfig:
    """The validated configuration of these features with the numbers of `config`."""
    drafter = _drafter(config)
    engine = copy.copy(_validated(drafter, config.max_loras > 0, config.use_connector))
    engine.scheduler_config = _scheduler_config(config)
    engine.cache_config = _cache_config(config.block_size, config.enable_prefix_caching)
    engine.cache_config.num_gpu_blocks = config.num_blocks
    if config.max_loras > 0:
        engine.lora_config = replace(engine.lora_config, max_loras=config.max_loras, max_cpu_loras=None)
    if drafter is not None:
        engine.speculative_config = _speculative(drafter, config.num_speculative_tokens)
    return engine


def cache_layout(config: Config) -> KVCacheConfig:
    """One group of full attention over all blocks of the pool, the reserved one included."""
    attention = FullAttentionSpec(
        block_size=config.block_size, num_kv_heads=1, head_size=16, dtype=torch.float32, use_mla=False
    )
    group = KVCacheGroupSpec(layer_names=["layer"], kv_cache_spec=attention)
    return KVCacheConfig(num_blocks=config.num_blocks, tensors={}, kv_cache_groups=[group])


def _drafter(config: Config) -> str | None:
    if config.num_speculative_tokens == 0:
        return None
    return "eagle" if config.use_eagle else "ngram"


def _scheduler_config(config: Config) -> SchedulerConfig:
    return SchedulerConfig(
        max_num_batched_tokens=config.max_num_batched_tokens,
        max_num_seqs=config.max_num_seqs,
        max_model_len=config.max_model_len,
        long_prefill_token_threshold=config.long_prefill_token_threshold,
        disable_chunked_mm_input=config.disable_chunked_mm_input,
        enable_chunked_prefill=True,
    )


def _cache_config(block_size: int, enable_prefix_caching: bool) -> CacheConfig:
    return CacheConfig(
        block_size=block_size,
        gpu_memory_utilization=0.9,
        swap_space=0,
        cache_dtype="auto",
        enable_prefix_caching=enable_prefix_caching,
    )


@cache
def _validated(drafter: str | None, adapters: bool, connector: bool) -> VllmConfig:
    """One configuration that vLLM itself has checked, for one combination of features."""
    return VllmConfig(
        model_config=_model(),
        cache_config=_cache_config(VALIDATED_BLOCK_SIZE, enable_prefix_caching=True),
        parallel_config=ParallelConfig(),
        scheduler_config=SchedulerConfig(
            max_num_batched_tokens=64, max_num_seqs=8, max_model_len=64, enable_chunked_prefill=True
        ),
        device_config=DeviceConfig(device="cpu"),
        lora_config=LoRAConfig(max_loras=1) if adapters else None,
        speculative_config=_speculative(drafter, 1) if drafter else None,
        kv_transfer_config=KVTransferConfig(kv_connector=CONNECTOR, kv_role="kv_both") if connector else None,
    )


@cache
def _model() -> ModelConfig:
    # Registered as a class, so that vLLM need not start a second interpreter to look at it.
    ModelRegistry.register_model("LlamaForCausalLM", LlamaForCausalLM)
    with TemporaryDirectory() as directory:
        return ModelConfig(
            model=_write_model(directory),
            task="generate",
            tokenizer=directory,
            tokenizer_mode="auto",
            trust_remote_code=False,
            dtype="float32",
            seed=0,
            enforce_eager=True,
            skip_tokenizer_init=True,
        )


@cache
def _speculative(drafter: str, num_speculative_tokens: int) -> SpeculativeConfig:
    with TemporaryDirectory() as directory:
        return SpeculativeConfig(
            method=drafter,
            model=_write_model(directory) if drafter == "eagle" else None,
            num_speculative_tokens=num_speculative_tokens,
            target_model_config=_model(),
            target_parallel_config=ParallelConfig(),
        )


def _write_model(directory: str) -> str:
    Path(directory, "config.json").write_text(json.dumps(TINY_LLAMA))
    return directory
