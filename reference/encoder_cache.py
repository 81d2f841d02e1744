"""The encoder cache: outputs of the encoder that wait until the model has read them.

Sizes and budgets are in encoder tokens.  An item is encoded as a whole, so a chunk of a prompt
either contains the output of an item or stops before it (ENC-2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reference.live_request import LiveRequest
from spec.vocabulary import Config


class Encoding(NamedTuple):
    """How much of a chunk can be computed, and which items must be encoded for it.

    `tokens` counts text positions; `items` are item numbers; `budget` is what is left to encode
    in this step.
    """

    tokens: int
    items: tuple[int, ...]
    budget: int


class EncoderCache:
    """Cached outputs by request id and item number, and how much room is left."""

    def __init__(self, config: Config) -> None:
        self.free_tokens = config.encoder_cache_size
        self.cached: dict[str, set[int]] = {}
        self._keeps_items_whole = config.disable_chunked_mm_input
        self._freed: list[tuple[str, int]] = []

    def choose(self, live: LiveRequest, start: int, tokens: int, budget: int) -> Encoding:
        """Cut the chunk `start .. start + tokens` where an item cannot be encoded (ENC-2)."""
        chosen: list[int] = []
        free = self.free_tokens
        cached = self.cached.get(live.request_id, ())
        for number, item in live.items_within(start, start + tokens):
            if number in cached:
                continue
            is_cut = start + tokens < item.end
            if self._keeps_items_whole and is_cut and start <= item.offset:
                tokens = item.offset - start
                break
            # Items chosen before this one are going to use the room as well (ENC-3).
            if item.length > free or item.length > budget:
                # A prefix hit may end inside the item: then nothing can be computed.
                tokens = max(0, item.offset - start)
                break
            free -= item.length
            budget -= item.length
            chosen.append(number)
        return Encoding(tokens, tuple(chosen), budget)

    def store(self, live: LiveRequest, items: Sequence[int]) -> None:
        """Take room for items that are encoded in this step (RUN-10)."""
        for number in items:
            self.cached.setdefault(live.request_id, set()).add(number)
            self.free_tokens -= live.request.items[number].length

    def release_computed(self, live: LiveRequest) -> None:
        """Free the items whose KV is complete (ENC-4)."""
        cached = self.cached.get(live.request_id, ())
        self._release(live, [number for number in cached if live.item_ends[number] <= live.computed])

    def release_all(self, live: LiveRequest) -> None:
        """Free the items of a request that ends or is preempted (ENC-4)."""
        self._release(live, tuple(self.cached.get(live.request_id, ())))

    def drain_freed(self) -> tuple[tuple[str, int], ...]:
        """What was freed since the last call, sorted by request id and item number."""
        freed = tuple(sorted(self._freed))
        self._freed.clear()
        return freed

    def _release(self, live: LiveRequest, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        cached = self.cached[live.request_id]
        for number in numbers:
            cached.remove(number)
            self.free_tokens += live.request.items[number].length
            self._freed.append((live.request_id, number))
        if not cached:
            del self.cached[live.request_id]
