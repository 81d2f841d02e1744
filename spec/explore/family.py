"""The family: a grid of small scopes, every size with every feature.

Sizes: 2 to 4 requests, 2 to 6 usable blocks, blocks of 1 to 3 tokens.  Two requests of a scope are equal and share
a prefix with the third, one is shorter; what does not fit its pool alone is left out, because it would be refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spec.events import Add
from spec.explore.scope import STEPS, Scope, ask
from spec.formulas import longest_footprint
from spec.vocabulary import Config

BLOCK_SIZES, BLOCKS, REQUESTS = (1, 2, 3), (2, 3, 4, 5, 6), (2, 3, 4)

LONGEST = 8


@dataclass(frozen=True)
class Feature:
    """What is special about a row of the grid.

    config    fields that differ from the plain configuration
    requests  for each offer, in turn, what its request has that a plain one has not
    drafts    the drafts of every script
    allowed   what may happen
    again     whether requests come again
    """

    config: Mapping[str, Any] = field(default_factory=dict)
    requests: tuple[Mapping[str, Any], ...] = ({},)
    drafts: tuple[tuple[int, int], ...] = ()
    allowed: tuple[str, ...] = STEPS
    again: bool = False


FEATURES: Mapping[str, Feature] = {
    "plain": Feature(),
    "again": Feature(again=True),
    "no-caching": Feature({"enable_prefix_caching": False}, again=True),
    "threshold": Feature({"long_prefill_token_threshold": 2}),
    "small-budget": Feature({"max_num_batched_tokens": 3}),
    "one-seat": Feature({"max_num_seqs": 1}),
    "aborts": Feature(allowed=(*STEPS, "abort")),
    "resets": Feature(allowed=(*STEPS, "reset")),
    "drafts": Feature({"num_speculative_tokens": 2}, drafts=((2, 1), (2, 2), (1, 0))),
    "eagle": Feature({"num_speculative_tokens": 1, "use_eagle": True}, drafts=((1, 1), (1, 0))),
    "adapters": Feature({"max_loras": 1}, ({}, {"lora_id": 1}, {"lora_id": 2})),
    "stops": Feature(requests=({"eos_token_id": 1}, {"stop_token_ids": (2,)})),
}


def family() -> Iterator[Scope]:
    """Every scope of the grid, small ones first."""
    for requests in REQUESTS:
        for block_size in BLOCK_SIZES:
            for blocks in BLOCKS:
                for name, feature in FEATURES.items():
                    scope = _scope(name, feature, requests, block_size, blocks)
                    if len(scope.offers) == requests:
                        yield scope


def _scope(name: str, feature: Feature, requests: int, block_size: int, blocks: int) -> Scope:
    plain = Config(blocks + 1, block_size, 6, 3, LONGEST)
    config = replace(plain, **feature.config)
    return Scope(
        f"{name}-{requests}x{blocks}x{block_size}",
        f"{requests} requests, {blocks} blocks of {block_size}",
        config,
        tuple(offer for offer in _offers(feature, requests) if longest_footprint(offer.request, config) <= blocks),
        feature.allowed,
        feature.again,
    )


TEXTS = (("121", 3, "212"), ("121", 3, "212"), ("1", 2, "32"), ("122", 2, "12"))
"""Prompt, most tokens and what is said, of the first to the fourth request."""


def _offers(feature: Feature, requests: int) -> Iterator[Add]:
    for index, (prompt, most, says) in enumerate(TEXTS[:requests]):
        more = feature.requests[index % len(feature.requests)]
        yield ask("abcd"[index], prompt, most, says, drafts=feature.drafts, **more)
