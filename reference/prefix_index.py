"""The prefix index: which blocks hold the content that a prefix key names.

Equal blocks are not merged, because a block table never changes the ids it has: a key can have
several blocks, and a lookup finds the one published first (CACHE-4).
"""

from __future__ import annotations

from reference.prefix_keys import PrefixKeys


class PrefixIndex:
    """Keys to blocks, oldest first, and blocks to keys."""

    def __init__(self, keys: PrefixKeys) -> None:
        self._keys = keys
        self._blocks: dict[int, dict[int, None]] = {}
        self._key_of: dict[int, int] = {}

    def find(self, key: int) -> int | None:
        """The block that was published first under this key and is still there (CACHE-4)."""
        blocks = self._blocks.get(key)
        if blocks is None:
            return None
        return next(iter(blocks))

    def key_of(self, block: int) -> int | None:
        """The key that a block is published under."""
        return self._key_of.get(block)

    def publish(self, block: int, key: int) -> None:
        """Make a block findable; ValueError if it already has a key (CACHE-5)."""
        if block in self._key_of:
            raise ValueError(f"block {block} already has a key")
        self._keys.retain(key)
        self._key_of[block] = key
        self._blocks.setdefault(key, {})[block] = None

    def evict(self, block: int) -> None:
        """Forget a block if it was published; equal blocks stay findable (EVI-1)."""
        key = self._key_of.pop(block, None)
        if key is None:
            return
        blocks = self._blocks[key]
        del blocks[block]
        if not blocks:
            del self._blocks[key]
        self._keys.release(key)

    def clear(self) -> None:
        """Forget every block; O(published blocks) (RESET-1)."""
        for block in tuple(self._key_of):
            self.evict(block)
