"""Prefix keys: whole numbers that name the content of a block and of all blocks before it.

A key stands for (parent key, tokens of the block, adapter, items in the block and where).  Equal content
gives the same number and different content never does: the content itself is compared, not a
digest of it (HASH-1, HASH-2).

A key lives while somebody holds a reference: a request's key list, a published block, or a
child key.  A child must keep its parent, else the same prefix would later get another number
and a block that is still cached could not be found again.
"""

from __future__ import annotations

from typing import NamedTuple

ROOT = 0
"""Parent of a first block's key; never a key itself."""


class BlockContent(NamedTuple):
    """What decides the KV of a block (HASH-3)."""

    parent: int
    tokens: tuple[int, ...]
    lora_id: int
    items: tuple[tuple[int, int], ...]
    """(content, place relative to the block) of each item that overlaps it."""


class PrefixKeys:
    """Interned block contents, counted by reference.  A number is never used twice."""

    def __init__(self) -> None:
        self._key_of: dict[BlockContent, int] = {}
        self._content_of: dict[int, BlockContent] = {}
        self._references: dict[int, int] = {}
        self._last_key = ROOT

    def __len__(self) -> int:
        return len(self._key_of)

    def intern(self, content: BlockContent) -> int:
        """The key of this content, with one reference for the caller."""
        key = self._key_of.get(content)
        if key is not None:
            self._references[key] += 1
            return key
        self._last_key += 1
        self._key_of[content] = self._last_key
        self._content_of[self._last_key] = content
        self._references[self._last_key] = 1
        if content.parent != ROOT:
            self._references[content.parent] += 1
        return self._last_key

    def retain(self, key: int) -> None:
        """Add a reference; KeyError if nobody holds the key."""
        self._references[key] += 1

    def release(self, key: int) -> None:
        """Give a reference back; keys that nobody holds any more are forgotten, parents too."""
        while key != ROOT:
            self._references[key] -= 1
            if self._references[key] > 0:
                return
            del self._references[key]
            content = self._content_of.pop(key)
            del self._key_of[content]
            key = content.parent
