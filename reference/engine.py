"""The complete engine: prompts in, tokens out.  The reference scheduler decides, the executor computes.

Sampling is greedy, so that the text of a request is decided by the model alone: not by who else is served, not by
preemption, not by drafts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reference.attention import load
from reference.executor import Executor
from reference.model import Model
from reference.model_config import ModelConfig, check_model
from reference.placement import check_cache_fits, place
from reference.scheduler import Scheduler
from spec.vocabulary import Config, ModelOutput, Request, StepPlan, StepResult


class EngineStep(NamedTuple):
    """What one step decided and delivered."""

    plan: StepPlan
    result: StepResult


class Engine:
    """One model, its cache and its scheduler.

    texts   what was delivered so far of each request
    """

    def __init__(
        self, model: ModelConfig, config: Config, device: str = "cpu", dtype: str = "float32", attention: str = "paged"
    ) -> None:
        """Raises BadModel for what cannot be made here, before anything is allocated."""
        placement = place(device, dtype)
        check_model(model)
        check_cache_fits(model, config, dtype, placement)
        attend = load(attention)
        self.scheduler = Scheduler(config)
        self.executor = Executor(Model(model, placement), config, attend)
        self.texts: dict[str, list[int]] = {}
        self._prompts: dict[str, Sequence[int]] = {}

    def add(self, request: Request) -> None:
        """Raises `spec.vocabulary.Refused` for a request that can never be served."""
        self.scheduler.add(request)
        self.executor.add(request)
        self._prompts[request.request_id] = request.prompt_token_ids
        self.texts[request.request_id] = []

    @property
    def busy(self) -> bool:
        return bool(self.scheduler.live)

    @property
    def free_blocks(self) -> int:
        return self.scheduler.kv_cache.pool.free_blocks

    def step(self) -> EngineStep:
        """Schedules, computes, samples and commits once."""
        plan = self.scheduler.schedule()
        sampled = {request_id: found.greedy() for request_id, found in self.executor.execute(plan).items()}
        self.executor.settle(sampled)
        drafts = {request_id: self._propose(request_id, tokens) for request_id, tokens in sampled.items()}
        result = self.scheduler.commit(plan, ModelOutput(sampled, drafts))
        for request_id, tokens in result.emitted:
            self.texts[request_id].extend(tokens)
        return EngineStep(plan, result)

    def generate(self, requests: Iterable[Request]) -> dict[str, list[int]]:
        """The texts of some requests, served together."""
        wanted = list(requests)
        for request in wanted:
            self.add(request)
        while self.busy:
            self.step()
        return {request.request_id: self.texts[request.request_id] for request in wanted}

    def _propose(self, request_id: str, sampled: Sequence[int]) -> tuple[int, ...]:
        """Prompt lookup: what followed the last token where it stood before."""
        most = self.executor.config.num_speculative_tokens
        said = [*self._prompts[request_id], *self.texts[request_id], *sampled]
        for at in range(len(said) - 2, -1, -1) if most else ():
            if said[at] == said[-1]:
                return tuple(said[at + 1 : at + 1 + most])
        return ()
