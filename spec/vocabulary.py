"""The nouns of paged, continuously batching request scheduling.

Everything that crosses a border between the spec, an implementation and the suite is one of
these values.  All are immutable; every count is in tokens unless its name says blocks,
requests or items.  A plan names positions of a request from 0: `start` is the first position
that a step computes, `start + tokens` the first one that it does not.

The values carry no behaviour: what must hold of them is in `validity`, what a scheduler does
with them in `scheduler`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

RESERVED_BLOCK = 0
"""The block that is never handed out: the pool has `num_blocks - 1` usable ones (BLK-1)."""


class Status(StrEnum):
    """Where a request stands (ST-1)."""

    WAITING = "waiting"
    WAITING_FOR_GRAMMAR = "waiting_for_grammar"
    RUNNING = "running"
    PREEMPTED = "preempted"
    FINISHED = "finished"


class FinishReason(StrEnum):
    """Why a request ended (FIN-1)."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"


class Admission(StrEnum):
    """How a request came into a step's plan (ADM-13)."""

    RUNNING = "running"
    NEW = "new"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True)
class Config:
    """What a scheduler is built with (CFG-1, CFG-2).

    `num_blocks` counts the reserved block.  A threshold, cap or budget of 0 turns the feature
    off: no long-prefill threshold, no adapters, no encoder.
    """

    num_blocks: int
    block_size: int
    max_num_batched_tokens: int
    max_num_seqs: int
    max_model_len: int
    long_prefill_token_threshold: int = 0
    enable_prefix_caching: bool = True
    num_speculative_tokens: int = 0
    use_eagle: bool = False
    max_loras: int = 0
    max_num_encoder_input_tokens: int = 0
    encoder_cache_size: int = 0
    disable_chunked_mm_input: bool = False
    use_connector: bool = False

    @property
    def lookahead(self) -> int:
        """Slots kept free behind the scheduled tokens for a drafter with KV (SPEC-1)."""
        return self.num_speculative_tokens if self.use_eagle else 0


class EncoderItem(NamedTuple):
    """One image (or audio clip, ...) whose embeddings stand at `offset .. offset + length`."""

    offset: int
    length: int
    content: int
    """Identity of what the item shows; equal content means equal length and equal embeddings."""

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks for.

    `external_tokens` is how long a prefix of the prompt the external KV store can supply;
    `lora_id` 0 is the base model.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    eos_token_id: int | None = None
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    lora_id: int = 0
    items: tuple[EncoderItem, ...] = ()
    needs_grammar: bool = False
    prompt_logprobs: bool = False
    external_tokens: int = 0
    priority: int = 0


class Grant(NamedTuple):
    """What one request gets in one step.

    `blocks`: only the newly taken ones for a running request, the whole table for one that is
    admitted.  `start` counts the hit and the external tokens of an admission; the last
    `external` of them are loaded in this step.  `drafts` are the last tokens of the grant.
    """

    request_id: str
    admission: Admission
    start: int
    tokens: int
    blocks: tuple[int, ...]
    drafts: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    external: int = 0


class StepPlan(NamedTuple):
    """The decision of one step, in the order in which it was taken (OUT-2, OUT-4).

    `finished` and `freed_items` are what ended since the previous plan, sorted: their order
    means nothing.  `common_prefix_blocks` is None where an implementation does not tell.
    """

    grants: tuple[Grant, ...]
    preempted: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    freed_items: tuple[tuple[str, int], ...] = ()
    common_prefix_blocks: int | None = None


class Finish(NamedTuple):
    """The end of one request; `stop_token` is the stop id that caused it, if one did."""

    request_id: str
    reason: FinishReason
    stop_token: int | None = None


_NOTHING: Mapping[str, tuple[int, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What the model says after a step: sampled tokens, and drafts for the next step.

    A request whose grant ends before its last known token samples nothing and is absent from
    `sampled`.  One that verified m drafts samples 1 to m + 1 tokens.
    """

    sampled: Mapping[str, tuple[int, ...]]
    drafts: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: _NOTHING)


class StepResult(NamedTuple):
    """What a step delivers to its clients, in the order of the running requests (UPD-4)."""

    emitted: tuple[tuple[str, tuple[int, ...]], ...]
    finished: tuple[Finish, ...]


class Refused(Exception):
    """A scheduler turns a request down; the text names the reason."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The rule choices of one release.

    A quirk makes the oracle follow a release where that breaks a law, so that a run can go on
    behind a known deviation.  Quirks are off unless a deviation file turns them on, and never
    on in proofs.
    """

    name: str
    quirks: frozenset[str] = frozenset()


QUIRKS: Mapping[str, str] = MappingProxyType(
    {
        "length_before_stop": "a stop token at the last allowed position is reported as length",
        "accepts_unservable": "a request that can never fit is accepted and retried for ever",
        "encoder_overcommit": "items chosen in one walk are not counted against the cache",
        "encoder_kept_on_preemption": "a preempted request keeps its encoder cache entries",
        "splits_item_at_start": "a chunk that begins exactly at an item may still cut it",
        "generated_block_names_last_item": "a block closed by generated tokens names only the last item",
    }
)

PROFILES: Mapping[str, Profile] = MappingProxyType({"vllm-0.8.5": Profile("vllm-0.8.5")})
