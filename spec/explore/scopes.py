"""The committed scopes, each about one thing: searched in the tests, covered by the corpus.

Sizes are chosen against each other, so that the thing happens: pools that hold one and a half requests, budgets
below a prompt.  In prompts and answers, 1 to 3 are words, 0 ends the sequence, 4 is a stop token, 9 stands in an item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from spec.explore.scope import STEPS, Scope, ask
from spec.vocabulary import Config, EncoderItem

EOS = {"eos_token_id": 0}


def _config(blocks: int, size: int, budget: int, seats: int, longest: int, **more: object) -> Config:
    """A configuration of so many usable blocks; more is off than by default."""
    return Config(blocks + 1, size, budget, seats, longest, **more)  # type: ignore[arg-type]


COMMITTED: tuple[Scope, ...] = (
    Scope(
        "preemption",
        "three equal requests in a pool for one and a half, for ever",
        _config(6, 1, 4, 3, 8, enable_prefix_caching=False),
        (ask("a", "12", 4), ask("b", "12", 4), ask("c", "12", 4)),
        again=True,
    ),
    Scope(
        "preemption-aborts",
        "two that outgrow the pool together, each of which may go away at any moment",
        _config(3, 2, 4, 2, 8),
        (ask("a", "123", 3, "12"), ask("b", "132", 2, "12")),
        (*STEPS, "abort"),
        again=True,
    ),
    Scope(
        "hits",
        "a prefix that is hit, evicted and computed again, by equal requests",
        _config(4, 2, 4, 2, 6),
        (ask("a", "1212", 2, "12"), ask("b", "1212", 2, "12"), ask("c", "12", 1)),
        again=True,
    ),
    Scope(
        "free-hits",
        "an admission that lacks blocks only because its hits are free ones",
        _config(4, 1, 8, 2, 5),
        (ask("a", "123", 1), ask("b", "124", 1), ask("c", "31", 2)),
    ),
    Scope(
        "chunks",
        "prompts longer than budget and threshold; more who want to run than seats",
        _config(6, 2, 3, 2, 6, long_prefill_token_threshold=2),
        (ask("a", "12312", 1), ask("b", "1231", 2, "20"), ask("c", "3", 1)),
    ),
    Scope(
        "stops",
        "every reason to end, at and before the caps",
        _config(5, 2, 8, 2, 4),
        (
            ask("a", "12", 3, "10", **EOS),
            ask("b", "13", 2, "14", stop_token_ids=(4,)),
            ask("c", "111", 3, "0", ignore_eos=True, **EOS),
        ),
    ),
    Scope(
        "drafts",
        "drafts accepted, rejected, trimmed by the budget, cut at the model length, kept through preemption",
        _config(4, 2, 4, 2, 7, num_speculative_tokens=2),
        (
            ask("a", "123", 4, "1231", drafts=((2, 2), (2, 1), (1, 0))),
            ask("b", "12", 4, "3123", drafts=((2, 0), (2, 2))),
        ),
        (*STEPS, "abort"),
    ),
    Scope(
        "drafts-tight",
        "more drafts than a resumed request has tokens to compute",
        _config(6, 1, 5, 2, 8, num_speculative_tokens=3),
        (ask("a", "12", 2, "12", drafts=((3, 1),)), ask("b", "1", 3, "221", drafts=((3, 2),))),
        again=True,
    ),
    Scope(
        "eagle",
        "lookahead slots, up to the model length; the last block of a hit is given back",
        _config(5, 2, 6, 2, 6, num_speculative_tokens=1, use_eagle=True),
        (ask("a", "12121", 2, "12", drafts=((1, 1),)), ask("b", "12121", 1, "1"), ask("c", "12", 2, "1")),
    ),
    Scope(
        "adapters",
        "two adapters under a cap of one; equal tokens under different adapters",
        _config(4, 2, 6, 3, 5, max_loras=1),
        (ask("a", "121", 2, lora_id=1), ask("b", "121", 2, lora_id=2), ask("c", "121", 1)),
    ),
    Scope(
        "priorities",
        "urgent requests behind others: the profile is first come, first served, whatever their priority",
        _config(4, 2, 4, 2, 6),
        (ask("a", "123", 3, "12", priority=2), ask("b", "13", 3, "12", priority=1), ask("c", "1", 2)),
    ),
    Scope(
        "grammars",
        "requests that wait for their grammar, overtaken, aborted",
        _config(4, 2, 6, 2, 5),
        (ask("a", "12", 1, needs_grammar=True), ask("b", "1", 2)),
        (*STEPS, "abort", "grammar ready"),
    ),
    Scope(
        "encoder",
        "items that do not fit budget or cache together",
        _config(5, 2, 4, 2, 7, max_num_encoder_input_tokens=2, encoder_cache_size=3),
        (
            ask("a", "199991", 1, items=(EncoderItem(1, 2, 20), EncoderItem(3, 2, 21))),
            ask("b", "9919", 2, items=(EncoderItem(0, 2, 20), EncoderItem(3, 1, 10))),
        ),
        (*STEPS, "abort"),
    ),
    Scope(
        "whole-items",
        "items that no chunk may cut",
        _config(5, 2, 3, 2, 7, max_num_encoder_input_tokens=3, encoder_cache_size=3, disable_chunked_mm_input=True),
        (ask("a", "199919", 1, items=(EncoderItem(1, 3, 30), EncoderItem(5, 1, 10))), ask("b", "12", 2)),
    ),
    Scope(
        "items-in-a-block",
        "blocks closed by a generated token behind two items, in a cache for one",
        _config(4, 3, 4, 2, 6, max_num_encoder_input_tokens=2, encoder_cache_size=1),
        (
            ask("a", "99", 2, "12", items=(EncoderItem(0, 1, 10), EncoderItem(1, 1, 12))),
            ask("b", "99", 2, "12", items=(EncoderItem(0, 1, 11), EncoderItem(1, 1, 12))),
        ),
    ),
    Scope(
        "connector",
        "prefixes from an external store, behind and inside the hits",
        _config(5, 2, 4, 2, 6, use_connector=True),
        (ask("a", "12121", 1), ask("b", "12121", 1, external_tokens=4), ask("c", "123", 2, external_tokens=2)),
    ),
    Scope(
        "resets",
        "the prefix cache is reset, or cannot be",
        _config(4, 2, 6, 2, 5),
        (ask("a", "1212", 1), ask("b", "12", 2, prompt_logprobs=True)),
        (*STEPS, "reset"),
        again=True,
    ),
    Scope(
        "refusals",
        "ids that are live, ids that never were, requests that never fit",
        _config(2, 2, 4, 2, 6),
        (ask("a", "12", 2), ask("b", "12121", 1)),
        (*STEPS, "add twice", "abort anyone"),
    ),
)
"""The premises of PROGRESS hold in all of them."""

SCOPES: Mapping[str, Scope] = {scope.name: scope for scope in COMMITTED}


# --- where a premise of PROGRESS is dropped ------------------------------------------------------


class Dropped(NamedTuple):
    """A scope that must get stuck, and how: a search that finds nothing there is wrong."""

    premise: str
    kind: str
    scope: Scope


_UNSERVABLE = frozenset({"accepts_unservable"})
_STALLS = frozenset({"PROGRESS"})

DROPPED: tuple[Dropped, ...] = (
    Dropped(
        "every request fits the pool alone",
        "deadlock",
        Scope(
            "larger-than-the-pool",
            "a prompt larger than the pool is accepted; a small one waits behind it",
            _config(3, 2, 8, 2, 8),
            (ask("a", "1212121", 1), ask("b", "1", 1)),
            quirks=_UNSERVABLE,
            tolerated=_STALLS,
        ),
    ),
    Dropped(
        "every request fits the pool alone, at its longest",
        "deadlock",
        Scope(
            "one-block-short",
            "a request that grows one block beyond the pool",
            _config(2, 2, 8, 2, 8),
            (ask("a", "121", 3), ask("b", "1", 1)),
            quirks=_UNSERVABLE,
            tolerated=_STALLS,
        ),
    ),
    Dropped(
        "a preempted request holds nothing",
        "deadlock",
        Scope(
            "encoder-kept",
            "one waits for blocks and keeps its encoder entry, the other waits for encoder space and keeps blocks",
            _config(
                2,
                4,
                5,
                2,
                8,
                long_prefill_token_threshold=4,
                max_num_encoder_input_tokens=2,
                encoder_cache_size=2,
            ),
            (
                ask("a", "1231299", 1, items=(EncoderItem(5, 2, 20),)),
                ask("b", "99", 1, items=(EncoderItem(0, 2, 21),)),
            ),
            quirks=frozenset({"encoder_kept_on_preemption"}),
            tolerated=_STALLS,
        ),
    ),
    Dropped(
        "no adapter waits for another",
        "starvation",
        Scope(
            "adapter-starves",
            "two that share an adapter take turns; a third waits for its own for ever",
            _config(6, 2, 8, 3, 6, max_loras=1),
            (ask("a", "12", 4, lora_id=1), ask("b", "12", 4, lora_id=1), ask("c", "13", 1, lora_id=2)),
            again=True,
        ),
    ),
)
