"""Prefix keys, the prefix index, lookup, publication, reset."""

from __future__ import annotations

from conformance.selftest.sabotage import Sabotage

KEYS = "reference.prefix_keys"
INDEX = "reference.prefix_index"
KV_CACHE = "reference.kv_cache"
POOL = "reference.block_pool"

PREFIXES: tuple[Sabotage, ...] = (
    # --- what a key names ----------------------------------------------------------------------
    Sabotage("parent-missing-from-key", "HASH-1", KV_CACHE, "parent=parent,", "parent=ROOT,"),
    Sabotage("adapter-missing-from-key", "HASH-3", KV_CACHE, "lora_id=live.request.lora_id,", "lora_id=0,"),
    Sabotage(
        "items-missing-from-key",
        "HASH-3",
        KV_CACHE,
        "tuple((item.content, item.offset - start) for _, item in live.items_within(start, end))",
        "()",
        trace="second-item-differs",
    ),
    Sabotage(
        "only-first-item-in-key",
        "HASH-3",
        KV_CACHE,
        "tuple((item.content, item.offset - start) for _, item in live.items_within(start, end))",
        "tuple((item.content, item.offset - start) for _, item in live.items_within(start, end))[:1]",
        trace="second-item-differs",
    ),
    Sabotage(
        "place-of-item-missing-from-key",
        "HASH-3",
        KV_CACHE,
        "(item.content, item.offset - start)",
        "(item.content, 0)",
        trace="item-elsewhere",
    ),
    Sabotage(
        "last-token-missing-from-key",
        "HASH-1",
        KV_CACHE,
        "live.tokens[start:end]",
        "live.tokens[start : end - 1]",
    ),
    Sabotage("child-does-not-keep-parent", "HASH-1", KEYS, "self._references[content.parent] += 1", "pass"),
    Sabotage("key-numbers-used-again", "HASH-2", KEYS, "self._last_key += 1", "self._last_key = len(self._key_of) + 1"),
    Sabotage("published-key-not-kept", "HASH-2", INDEX, "self._keys.retain(key)", "pass"),
    Sabotage("equal-content-new-key", "HASH-2", KEYS, "if key is not None:", "if key == ROOT:"),
    # --- lookup --------------------------------------------------------------------------------
    Sabotage("nothing-left-to-compute", "CACHE-3", KV_CACHE, "usable -= 1", "usable -= 0"),
    Sabotage(
        "last-block-never-hit",
        "CACHE-3",
        KV_CACHE,
        "if usable * self._block_size == len(live.tokens):",
        "if usable:",
    ),
    Sabotage(
        "resumed-looks-nothing-up",
        "CACHE-1",
        KV_CACHE,
        "if not self._caching:",
        "if not self._caching or live.outputs:",
    ),
    Sabotage("eagle-drops-nothing", "CACHE-1", KV_CACHE, "hits.pop()", "pass"),
    Sabotage(
        "every-drafter-drops-one",
        "CACHE-1",
        KV_CACHE,
        "= config.use_eagle",
        "= config.num_speculative_tokens > 0",
    ),
    Sabotage(
        "prompt-logprobs-read-the-cache",
        "CACHE-1",
        KV_CACHE,
        "if live.request.prompt_logprobs:",
        "if not live.request:",
    ),
    Sabotage("newest-duplicate-wins", "CACHE-4", INDEX, "next(iter(blocks))", "next(reversed(blocks))"),
    # --- publication ---------------------------------------------------------------------------
    Sabotage("drafts-published", "CACHE-8", KV_CACHE, "(end - len(live.drafts)) //", "end //"),
    Sabotage(
        "part-block-published",
        "KEY",
        KV_CACHE,
        "(end - len(live.drafts)) // self._block_size)",
        "ceil_div(end - len(live.drafts), self._block_size))",
    ),
    Sabotage(
        "published-one-block-late",
        "CACHE-5",
        KV_CACHE,
        "(end - len(live.drafts)) //",
        "(end - len(live.drafts) - 1) //",
    ),
    Sabotage("published-count-regresses", "CACHE-5", KV_CACHE, "if full_blocks <= live", "if full_blocks == live"),
    Sabotage("hits-published-again", "CACHE-5", KV_CACHE, "live.published_blocks += len(hits)", "pass"),
    Sabotage("published-count-outlives-table", "CACHE-5", KV_CACHE, "        live.published_blocks = 0\n", ""),
    Sabotage(
        "published-with-caching-off",
        "CACHE-5",
        KV_CACHE,
        "if self._caching:\n            # Drafts",
        "if hits is not None:\n            # Drafts",
    ),
    # --- eviction and reset --------------------------------------------------------------------
    Sabotage("taken-block-keeps-key", "EVI-1", POOL, "self.index.evict(block)", "pass"),
    Sabotage("eviction-takes-duplicates-along", "EVI-1", INDEX, "        if not blocks:\n", "        if key:\n"),
    Sabotage(
        "freed-block-loses-key",
        "EVI-1",
        POOL,
        "self.free_queue.append(block)",
        "self.free_queue.append(block)\n                self.index.evict(block)",
    ),
    Sabotage(
        "reset-while-blocks-are-held",
        "RESET-1",
        POOL,
        "if self.free_blocks < self._usable_blocks:",
        "if self.free_blocks < 0:",
    ),
    Sabotage("reset-clears-nothing", "RESET-1", POOL, "self.index.clear()", "pass"),
    Sabotage(
        "reset-always-refused",
        "RESET-1",
        POOL,
        "self._usable_blocks = num_blocks - 1",
        "self._usable_blocks = num_blocks",
    ),
    Sabotage(
        "reset-sorts-the-free-queue",
        "RESET-1",
        POOL,
        "self.index.clear()",
        "self.index.clear()\n        self.free_queue = FreeQueue(len(self.references))",
    ),
)
