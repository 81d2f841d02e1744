"""The real scheduler of vLLM V1, driven in this process on the CPU.

Written for release 0.8.5; what another release does differently goes into the module that it
concerns, told apart by the signature that changed, never by a version string.

| module | what of vLLM it builds or reads |
|---|---|
| `environment` | the settings and the platform, before the first import |
| `configs` | `VllmConfig` and its parts, `KVCacheConfig` |
| `requests` | `Request`, `SamplingParams`, `LoRARequest`, `PlaceholderRange` |
| `connector` | a `KVConnectorBase_V1` that answers what the request says |
| `grammar` | a `StructuredOutputBackend` that accepts every token |
| `steps` | `SchedulerOutput` to plan, tokens to `ModelRunnerOutput`, `EngineCoreOutputs` to result |
| `inspection` | queues, block pool and per-request maps |
| `scheduler` | the `SchedulerUnderTest` made of these |
"""

from __future__ import annotations

from conformance.adapters.vllm_v1 import environment

environment.prepare()  # before anything of vLLM is imported by the modules below

from conformance.adapters.vllm_v1.scheduler import CAPABILITIES, VllmScheduler  # noqa: E402
from conformance.protocol import Implementation  # noqa: E402

IMPLEMENTATION = Implementation(
    name="vllm",
    factory=VllmScheduler,
    capabilities=CAPABILITIES,
    deviations=f"vllm-{environment.release()}",
    header=environment.header(),
)
