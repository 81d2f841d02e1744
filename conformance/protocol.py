"""What the suite asks of an implementation, and how one is found by name.

An implementation is a factory that makes one scheduler from a `Config`.  It declares what it
can do; what it cannot do is reported as unsupported, never as passed.

    $ pytest conformance/ --impl reference
    $ pytest conformance/ --impl my_port.scheduler:make

See `docs/adapters.md` for how to write one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from spec.observer import Inspection
from spec.vocabulary import Config, ModelOutput, Request, StepPlan, StepResult

__all__ = [
    "CAPABILITIES",
    "Implementation",
    "Inspection",
    "SchedulerUnderTest",
    "UnknownImplementation",
    "load",
    "needs",
]

CAPABILITIES: Mapping[str, str] = {
    "adapters": "LoRA adapters and their cap",
    "connector": "external tokens from a synchronous KV connector",
    "eagle": "a drafter with KV: lookahead slots, last matched block dropped",
    "encoder": "encoder items, their budget and cache",
    "grammar": "requests that wait for a grammar",
    "inspect": "queues, reference counts, free order and keys can be read",
    "prompt_logprobs": "requests that must not read the prefix cache",
    "reset": "reset of the prefix cache",
    "speculation": "drafts, acceptance and rollback",
}
"""What an adapter may declare, beyond text requests, prefix caching and aborts."""


class SchedulerUnderTest(Protocol):
    """One scheduler, driven one step at a time: schedule, then commit the model's output.

    `add` may raise `spec.vocabulary.Refused`.  Anything else that is raised breaks law ANSWER.
    `grammar_ready` tells that the grammar of a waiting request has been compiled.
    """

    def add(self, request: Request) -> None: ...

    def abort(self, request_id: str) -> None: ...

    def grammar_ready(self, request_id: str) -> None: ...

    def reset_prefix_cache(self) -> bool: ...

    def schedule(self) -> StepPlan: ...

    def commit(self, plan: StepPlan, output: ModelOutput) -> StepResult: ...

    def inspect(self, blocks: Collection[int] | None = None) -> Inspection | None: ...


@dataclass(frozen=True)
class Implementation:
    """A named factory and what is known about it before it runs.

    `deviations` names the file of known deviations, `header` the lines that tell a reader what
    exactly is under test and what was adjusted to drive it.
    """

    name: str
    factory: Callable[[Config], SchedulerUnderTest]
    capabilities: frozenset[str]
    deviations: str | None = None
    header: Sequence[str] = field(default_factory=tuple)


BUILT_IN: Mapping[str, str] = {
    "reference": "conformance.adapters.reference:IMPLEMENTATION",
    "vllm": "conformance.adapters.vllm_v1:IMPLEMENTATION",
}


class UnknownImplementation(ValueError):
    """`--impl` names nothing that can be driven."""


def load(name: str) -> Implementation:
    """The implementation behind `NAME` or `package.module:attribute`.

    The attribute is an `Implementation`, or a factory `(Config) -> SchedulerUnderTest` with an
    optional attribute `capabilities`.  Raises UnknownImplementation with the reason.
    """
    target = BUILT_IN.get(name, name)
    module_name, colon, attribute = target.partition(":")
    if not colon:
        known = ", ".join(sorted(BUILT_IN))
        raise UnknownImplementation(f"--impl {name}: not one of {known}, and not package.module:factory")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except (Exception, SystemExit) as error:  # a module may do anything when it is imported
        raise UnknownImplementation(f"--impl {name}: {type(error).__name__}: {error}") from error
    if isinstance(found, Implementation):
        return found
    if not callable(found):
        raise UnknownImplementation(f"--impl {name}: {attribute} is neither an Implementation nor a factory")
    capabilities = frozenset(getattr(found, "capabilities", ()))
    if unknown := capabilities - CAPABILITIES.keys():
        raise UnknownImplementation(f"--impl {name}: unknown capability {sorted(unknown)[0]!r}")
    return Implementation(name, found, capabilities)


def needs(config: Config, request: Request | None = None) -> frozenset[str]:
    """The capabilities that a configuration, or a request in it, asks for."""
    wanted = {
        "adapters": config.max_loras > 0,
        "connector": config.use_connector,
        "eagle": config.use_eagle,
        "encoder": config.encoder_cache_size > 0,
        "speculation": config.num_speculative_tokens > 0,
        "grammar": request is not None and request.needs_grammar,
        "prompt_logprobs": request is not None and request.prompt_logprobs,
    }
    return frozenset(name for name, wants in wanted.items() if wants)
