"""A grammar that accepts every token, compiled exactly when the suite says so.

The backend and the grammar fill vLLM's own abstract classes, so that no tokenizer is needed.
The work that vLLM submits to compile one is held by an executor until it is released: the real
future of the request is then what says "not yet".
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import torch
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar


class AnyToken(StructuredOutputGrammar):  # type: ignore[misc]
    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        return True

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        bitmask[batch_index] = -1

    def is_terminated(self) -> bool:
        return False

    def reset(self) -> None:
        pass


class AnyTokenBackend(StructuredOutputBackend):  # type: ignore[misc]
    def compile_grammar(self, request_type: Any, grammar_spec: str) -> AnyToken:
        return AnyToken()

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        return torch.zeros((max_num_seqs, 1), dtype=torch.int32)

    def destroy(self) -> None:
        pass


class HeldCompilations(Executor):
    """Runs the compilation of a request's grammar when that request is released."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Future[Any], Callable[[Any], Any], Any]] = {}

    def submit(self, compile_for: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        (request,) = args
        future: Future[Any] = Future()
        self._held[request.request_id] = (future, compile_for, request)
        return future

    def release(self, request_id: str) -> None:
        """Compile now; nothing happens for a request that waits for no grammar."""
        held = self._held.pop(request_id, None)
        if held is not None:
            future, compile_for, request = held
            future.set_result(compile_for(request))

    def forget(self, request_id: str) -> None:
        self._held.pop(request_id, None)


def manager(vllm_config: Any) -> tuple[StructuredOutputManager, HeldCompilations]:
    """vLLM's own manager with this backend, and the executor that holds its work."""
    made = StructuredOutputManager(vllm_config)
    made.backend = AnyTokenBackend()
    made.executor = held = HeldCompilations()
    return made, held
