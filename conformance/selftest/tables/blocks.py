"""The pool, the free queue, block tables."""

from __future__ import annotations

from conformance.selftest.sabotage import Sabotage

POOL = "reference.block_pool"
QUEUE = "reference.free_queue"
KV_CACHE = "reference.kv_cache"

BLOCKS: tuple[Sabotage, ...] = (
    # --- the pool ------------------------------------------------------------------------------
    Sabotage(
        "reserved-block-handed-out",
        "BLK-1",
        POOL,
        "self.free_queue.pop_front() for",
        "self.free_queue.pop_front() - 1 for",
    ),
    Sabotage(
        "pool-one-block-too-large",
        "POOL",
        KV_CACHE,
        "BlockPool(config.num_blocks,",
        "BlockPool(config.num_blocks + 1,",
    ),
    Sabotage(
        "newest-free-block-first",
        "BLK-3",
        QUEUE,
        "block = self._next[_ENDS]\n        if",
        "block = self._prev[_ENDS]\n        if",
    ),
    Sabotage(
        "freed-to-the-front",
        "FREE-1",
        QUEUE,
        """        last = self._prev[_ENDS]
        self._next[last] = block
        self._prev[block] = last
        self._next[block] = _ENDS
        self._prev[_ENDS] = block
""",
        """        first = self._next[_ENDS]
        self._prev[first] = block
        self._next[block] = first
        self._prev[block] = _ENDS
        self._next[_ENDS] = block
""",
    ),
    Sabotage("hit-stays-in-free-queue", "BLK-4", POOL, "self.free_queue.remove(block)", "pass"),
    Sabotage("hit-resets-references", "BLK-4", POOL, "self.references[block] += 1", "self.references[block] = 1"),
    Sabotage(
        "freed-while-shared",
        "FREE-3",
        POOL,
        "self.references[block] -= 1\n            if self.references[block] == 0:",
        "self.references[block] -= 1\n            if block not in self.free_queue:",
    ),
    Sabotage(
        "release-drops-all-references",
        "FREE-3",
        POOL,
        "self.references[block] -= 1",
        "self.references[block] = 0",
    ),
    Sabotage("freed-block-leaks", "FREE-1", POOL, "self.free_queue.append(block)", "pass"),
    Sabotage(
        "first-block-leaks",
        "COUNT",
        KV_CACHE,
        "self.pool.release(blocks)",
        "self.pool.release(list(blocks)[:-1])",
    ),
    Sabotage("every-hit-costs-a-block", "ALLOC-1", POOL, "if self.references[block] == 0)", "if block)"),
    Sabotage(
        "common-prefix-is-whole-table",
        "OUT-5",
        POOL,
        "self.references[block] != holders",
        "self.references[block] == 0",
    ),
    # --- allocation ----------------------------------------------------------------------------
    Sabotage("free-hits-counted-twice", "ALLOC-1", KV_CACHE, " - self.pool.count_free(hits)", ""),
    Sabotage("hits-not-touched", "BLK-4", KV_CACHE, "self.pool.touch(hits)", "pass"),
    Sabotage(
        "refused-allocation-holds-hits",
        "ALLOC-A",
        KV_CACHE,
        "count_free(hits):\n",
        "count_free(hits):\n            self.pool.touch(hits)\n",
    ),
    Sabotage("hits-not-subtracted", "ALLOC-A", KV_CACHE, "- len(live.table) - len(hits)", "- len(live.table)"),
    Sabotage(
        "one-block-too-many",
        "ALLOC-A",
        KV_CACHE,
        "- len(live.table) - len(hits)",
        "- len(live.table) - len(hits) + 1",
    ),
    Sabotage(
        "last-part-block-missing",
        "COVER",
        KV_CACHE,
        "ceil_div(end + self._lookahead, self._block_size)",
        "(end + self._lookahead) // self._block_size",
    ),
    Sabotage(
        "last-free-block-unused",
        "ALLOC-A",
        KV_CACHE,
        "if need > self.pool.free_blocks",
        "if need >= self.pool.free_blocks",
    ),
    Sabotage("lookahead-missing", "SPEC-1", KV_CACHE, "end + self._lookahead", "end"),
    Sabotage("lookahead-without-eagle", "SPEC-1", KV_CACHE, "config.lookahead", "config.num_speculative_tokens"),
    Sabotage("table-outgrows-the-model", "ALLOC-4", KV_CACHE, "max(0, min(need, room))", "max(0, need)"),
    Sabotage(
        "capacity-asked-with-the-cap",
        "ALLOC-4",
        KV_CACHE,
        "ceil_div(end + self._lookahead,",
        "ceil_div(min(end + self._lookahead, self._max_table_blocks * self._block_size),",
        trace="lookahead-beyond-the-model",
    ),
    # --- release -------------------------------------------------------------------------------
    Sabotage(
        "freed-head-first",
        "FREE-1",
        KV_CACHE,
        "reversed(live.table) if self._caching else live.table",
        "live.table",
    ),
    Sabotage(
        "freed-tail-first-without-caching",
        "FREE-1",
        KV_CACHE,
        "reversed(live.table) if self._caching else live.table",
        "reversed(live.table)",
    ),
    Sabotage("released-table-remains", "FREE-1", KV_CACHE, "        live.table = []\n", ""),
)
