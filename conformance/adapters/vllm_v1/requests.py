"""The real request objects of vLLM, made from one `Request` of the spec."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from vllm.lora.request import LoRARequest
from vllm.multimodal.inputs import MultiModalKwargs, PlaceholderRange
from vllm.sampling_params import GuidedDecodingParams, SamplingParams
from vllm.v1.request import Request as VllmRequest
from vllm.v1.structured_output.request import StructuredOutputRequest

from spec.vocabulary import Request

_GRAMMAR = GuidedDecodingParams(json_object=True)
_NO_MEDIA = MultiModalKwargs({})


def vllm_request(request: Request) -> Any:
    """What the engine would hand to its scheduler for this request."""
    sampling = _sampling(
        request.max_tokens,
        request.ignore_eos,
        request.stop_token_ids,
        request.prompt_logprobs,
        request.needs_grammar,
    )
    items = request.items
    return VllmRequest(
        request_id=request.request_id,
        prompt_token_ids=list(request.prompt_token_ids),
        multi_modal_inputs=[_NO_MEDIA] * len(items),
        multi_modal_hashes=[str(item.content) for item in items],
        multi_modal_placeholders=[PlaceholderRange(offset=item.offset, length=item.length) for item in items],
        sampling_params=sampling,
        eos_token_id=request.eos_token_id,
        arrival_time=0.0,
        lora_request=_adapter(request.lora_id) if request.lora_id else None,
        structured_output_request=StructuredOutputRequest(sampling) if request.needs_grammar else None,
    )


@lru_cache(maxsize=1024)
def _sampling(
    max_tokens: int, ignore_eos: bool, stop_token_ids: tuple[int, ...], prompt_logprobs: bool, needs_grammar: bool
) -> Any:
    # Shared between requests: the scheduler only reads it.
    return SamplingParams(
        max_tokens=max_tokens,
        ignore_eos=ignore_eos,
        stop_token_ids=list(stop_token_ids),
        prompt_logprobs=1 if prompt_logprobs else None,
        guided_decoding=_GRAMMAR if needs_grammar else None,
        detokenize=False,
    )


@lru_cache(maxsize=1024)
def _adapter(lora_id: int) -> Any:
    return LoRARequest(lora_name=f"adapter-{lora_id}", lora_int_id=lora_id, lora_path=f"adapter-{lora_id}")
