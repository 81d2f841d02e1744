"""One real scheduler of vLLM behind the suite's protocol."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from vllm.v1.core.encoder_cache_manager import EncoderCacheManager
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.request import RequestStatus

from conformance.adapters.vllm_v1 import configs, grammar, steps
from conformance.adapters.vllm_v1.inspection import inspection
from conformance.adapters.vllm_v1.requests import vllm_request
from conformance.protocol import Inspection
from spec.vocabulary import Config, ModelOutput, Request, StepPlan, StepResult

CAPABILITIES = frozenset(
    {
        "adapters",
        "connector",
        "eagle",
        "encoder",
        "grammar",
        "inspect",
        "prompt_logprobs",
        "reset",
        "speculation",
    }
)


class VllmScheduler:
    """A `SchedulerUnderTest`.  Whatever vLLM raises goes through to the caller unchanged."""

    def __init__(self, config: Config) -> None:
        engine = configs.engine_config(config)
        self._grammars, self._compilations = grammar.manager(engine)
        self._scheduler = Scheduler(engine, configs.cache_layout(config), self._grammars, log_stats=False)
        if config.encoder_cache_size:
            self._scheduler.max_num_encoder_input_tokens = config.max_num_encoder_input_tokens
            self._scheduler.encoder_cache_manager = EncoderCacheManager(config.encoder_cache_size)
        self._speculates = config.num_speculative_tokens > 0
        self._decision: Any = None

    def add(self, request: Request) -> None:
        made = vllm_request(request)
        if request.needs_grammar:
            self._grammars.grammar_init(made)
        if (connector := self._scheduler.connector) is not None:
            connector.available[request.request_id] = request.external_tokens
        self._scheduler.add_request(made)

    def abort(self, request_id: str) -> None:
        self._scheduler.finish_requests(request_id, RequestStatus.FINISHED_ABORTED)
        self._compilations.forget(request_id)

    def grammar_ready(self, request_id: str) -> None:
        self._compilations.release(request_id)

    def reset_prefix_cache(self) -> bool:
        return bool(self._scheduler.reset_prefix_cache())

    def schedule(self) -> StepPlan:
        scheduler = self._scheduler
        before = list(scheduler.running)
        self._decision = decision = scheduler.schedule()
        connector = scheduler.connector
        loaded = {} if connector is None else connector.take_loaded()
        return steps.step_plan(decision, steps.preempted_in(decision, before, scheduler.running), loaded)

    def commit(self, plan: StepPlan, output: ModelOutput) -> StepResult:
        decision = self._decision
        runner_output = steps.runner_output(decision, output, self._speculates)
        return steps.step_result(self._scheduler.update_from_output(decision, runner_output))

    def inspect(self, blocks: Collection[int] | None = None) -> Inspection:
        return inspection(self._scheduler, blocks)
