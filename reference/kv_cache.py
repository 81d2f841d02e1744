"""The KV cache of all requests: prefix lookup, block tables, publication of full blocks.

The only place where blocks move between the pool and a request.  Tables only grow until they
are released as a whole (ALLOC-3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from reference.block_pool import BlockPool
from reference.limits import ceil_div
from reference.live_request import LiveRequest
from reference.prefix_index import PrefixIndex
from reference.prefix_keys import ROOT, BlockContent, PrefixKeys
from spec.vocabulary import Config


class KVCache:
    """Hands out blocks to requests and finds the ones that already hold what they need."""

    def __init__(self, config: Config) -> None:
        self.keys = PrefixKeys()
        self.pool = BlockPool(config.num_blocks, PrefixIndex(self.keys))
        self._block_size = config.block_size
        self._lookahead = config.lookahead
        self._caching = config.enable_prefix_caching
        self._drops_last_hit = config.use_eagle
        self._max_table_blocks = ceil_div(config.max_model_len, config.block_size)

    def lookup(self, live: LiveRequest) -> list[int]:
        """The blocks of the longest cached prefix; nothing moves (CACHE-1).

        At least the last known token is left to compute, or nothing could be sampled (CACHE-3).
        """
        if not self._caching:
            return []
        if not live.keys:
            # Only once: from here on the list grows with what is published (HASH-4).
            self._extend_keys(live, len(live.tokens) // self._block_size)
        if live.request.prompt_logprobs:
            return []
        usable = len(live.keys)
        if usable * self._block_size == len(live.tokens):
            usable -= 1
        hits = self._walk(islice(live.keys, usable))
        if self._drops_last_hit and hits:
            # The drafter needs the hidden states of the last block, which are not cached.
            hits.pop()
        return hits

    def allocate(self, live: LiveRequest, num_tokens: int, hits: Sequence[int] = ()) -> list[int] | None:
        """Slots for the next `num_tokens` tokens (loaded ones included) behind the hits.

        Returns the newly taken blocks, or None if the pool has too few; then nothing has
        changed (ALLOC-A, ALLOC-2).
        """
        start = live.computed + len(hits) * self._block_size
        end = start + num_tokens
        wanted_blocks = ceil_div(end + self._lookahead, self._block_size)
        need = wanted_blocks - len(live.table) - len(hits)
        # A hit on a free block takes it out of the free queue (ALLOC-1).
        if need > self.pool.free_blocks - self.pool.count_free(hits):
            return None
        self.pool.touch(hits)
        live.table.extend(hits)
        live.published_blocks += len(hits)
        # Capacity is asked without the cap, but a table never outgrows the model (ALLOC-4).
        room = self._max_table_blocks - len(live.table)
        taken = self.pool.take(max(0, min(need, room)))
        live.table.extend(taken)
        if self._caching:
            # Drafts may be rejected, so their positions are not part of a full block (CACHE-8).
            self._publish(live, (end - len(live.drafts)) // self._block_size)
        return taken

    def release(self, live: LiveRequest) -> None:
        """Give all blocks of a request back (FREE-1)."""
        # The tail of a prefix is worth least to others: it is the first to be evicted.
        blocks: Iterable[int] = reversed(live.table) if self._caching else live.table
        self.pool.release(blocks)
        live.table = []
        live.published_blocks = 0

    def forget(self, live: LiveRequest) -> None:
        """Drop the keys of a request that has ended (FIN-2)."""
        for key in reversed(live.keys):
            self.keys.release(key)
        live.keys = []

    def _walk(self, keys: Iterable[int]) -> list[int]:
        hits: list[int] = []
        for key in keys:
            block = self.pool.index.find(key)
            if block is None:
                break
            hits.append(block)
        return hits

    def _publish(self, live: LiveRequest, full_blocks: int) -> None:
        # Untrimmed drafts can make the count smaller than before; what is published stays so.
        if full_blocks <= live.published_blocks:
            return
        self._extend_keys(live, full_blocks)
        for position in range(live.published_blocks, full_blocks):
            self.pool.index.publish(live.table[position], live.keys[position])
        live.published_blocks = full_blocks

    def _extend_keys(self, live: LiveRequest, num_blocks: int) -> None:
        """Name the blocks of a request up to `num_blocks`; each is named once (HASH-4)."""
        parent = live.keys[-1] if live.keys else ROOT
        for position in range(len(live.keys), num_blocks):
            start = position * self._block_size
            end = start + self._block_size
            content = BlockContent(
                parent=parent,
                tokens=tuple(live.tokens[start:end]),
                lora_id=live.request.lora_id,
                items=tuple((item.content, item.offset - start) for _, item in live.items_within(start, end)),
            )
            parent = self.keys.intern(content)
            live.keys.append(parent)
