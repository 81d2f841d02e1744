"""Encoder items: budget, cache, whole items."""

from __future__ import annotations

from conformance.selftest.sabotage import Sabotage

ENCODER_CACHE = "reference.encoder_cache"
SCHEDULER = "reference.scheduler"
LIVE_REQUEST = "reference.live_request"

ENCODER: tuple[Sabotage, ...] = (
    # --- what a step encodes -------------------------------------------------------------------
    Sabotage(
        "encoder-budget-per-request",
        "BUDGET",
        SCHEDULER,
        "step.encoder_budget = encoding.budget",
        "pass",
        trace="encoder-budget",
    ),
    Sabotage(
        "encoder-budget-per-item",
        "ENC-2",
        ENCODER_CACHE,
        "budget -= item.length",
        "budget -= 0",
        trace="encoder-budget",
    ),
    Sabotage(
        "encoder-budget-ignored",
        "ENC-2",
        ENCODER_CACHE,
        "item.length > free or item.length > budget",
        "item.length > free",
        trace="encoder-budget",
    ),
    Sabotage("encoder-budget-one-too-small", "ENC-2", ENCODER_CACHE, "item.length > budget", "item.length >= budget"),
    Sabotage(
        "encoder-cache-size-ignored",
        "ENC-3",
        ENCODER_CACHE,
        "item.length > free or item.length > budget",
        "item.length > budget",
        trace="encoder-cache",
    ),
    Sabotage(
        "encoder-cache-one-too-small",
        "ENC-3",
        ENCODER_CACHE,
        "item.length > free or",
        "item.length >= free or",
        trace="encoder-cache",
    ),
    Sabotage("encoder-cache-overcommitted", "ENC-3", ENCODER_CACHE, "            free -= item.length\n", ""),
    Sabotage(
        "item-encoded-twice",
        "ENC-2",
        ENCODER_CACHE,
        "if number in cached:",
        "if number < 0:",
        trace="hit-ends-inside-item",
    ),
    Sabotage(
        "item-encoded-one-step-early",
        "ENC-2",
        LIVE_REQUEST,
        "items[number].offset < end",
        "items[number].offset <= end",
        trace="item-behind-the-chunk",
    ),
    Sabotage(
        "begun-item-not-encoded",
        "EMBED",
        ENCODER_CACHE,
        "if number in cached:",
        "if number in cached or item.offset < start:",
        trace="hit-ends-inside-item",
    ),
    Sabotage(
        "stops-one-token-early",
        "ENC-2",
        ENCODER_CACHE,
        "max(0, item.offset - start)",
        "max(0, item.offset - start - 1)",
    ),
    Sabotage(
        "computes-item-it-cannot-encode",
        "EMBED",
        ENCODER_CACHE,
        "max(0, item.offset - start)",
        "max(0, item.offset - start + 1)",
    ),
    Sabotage(
        "negative-grant-inside-item",
        "ENC-2",
        ENCODER_CACHE,
        "max(0, item.offset - start)",
        "item.offset - start",
        trace="hit-ends-inside-item",
    ),
    # --- whole items ---------------------------------------------------------------------------
    Sabotage("items-cut", "WHOLE", ENCODER_CACHE, "= config.disable_chunked_mm_input", "= False", trace="item-cut"),
    Sabotage(
        "item-cut-at-chunk-start",
        "WHOLE",
        ENCODER_CACHE,
        "is_cut and start <= item.offset",
        "is_cut and start < item.offset",
        trace="item-split-at-start",
    ),
    Sabotage("items-whole-without-being-asked", "ENC-2", ENCODER_CACHE, "= config.disable_chunked_mm_input", "= True"),
    # --- the cache -----------------------------------------------------------------------------
    Sabotage(
        "cached-item-takes-no-room",
        "ENC-3",
        ENCODER_CACHE,
        "self.free_tokens -= live.request.items[number].length",
        "pass",
    ),
    Sabotage(
        "freed-item-gives-no-room-back",
        "ENC-4",
        ENCODER_CACHE,
        "self.free_tokens += live.request.items[number].length",
        "pass",
    ),
    Sabotage(
        "freed-item-not-reported",
        "ENC-4",
        ENCODER_CACHE,
        "self._freed.append((live.request_id, number))",
        "pass",
    ),
    Sabotage("freed-item-reported-for-ever", "ENC-4", ENCODER_CACHE, "self._freed.clear()", "pass"),
    Sabotage(
        "item-freed-when-begun",
        "ENC-4",
        ENCODER_CACHE,
        "live.item_ends[number] <= live",
        "live.request.items[number].offset <= live",
        trace="hit-ends-inside-item",
    ),
    Sabotage(
        "item-freed-one-token-late",
        "ENC-4",
        ENCODER_CACHE,
        "live.item_ends[number] <= live",
        "live.item_ends[number] < live",
    ),
    Sabotage("consumed-item-kept", "ENC-4", SCHEDULER, "self.encoder_cache.release_computed(live)", "pass"),
)
