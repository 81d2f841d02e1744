"""Shadow memory: whose KV each block of the pool holds, without any tensor.

The KV of a position is decided by its token, by whatever else changes KV there, and by everything
before it; never by the request that computed it.  So a block's content is the identity of the prefix
before it and one letter for each slot.  Equal prefix and equal letters, equal KV.

A block that is handed out as new holds nothing: its new owner will overwrite it, and nobody may rely
on what it held.  (On tensors, this is the moment at which a block is poisoned.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spec.vocabulary import Request

Identity = int
Letter = int

_ROOT = 0x5C4ED
_IN_ITEM = 0x17E3


class Content(NamedTuple):
    """What a block holds: the prefix before it, and the letters of its leading slots."""

    prefix: Identity
    letters: tuple[Letter, ...]

    @property
    def identity(self) -> Identity:
        """The prefix up to and including this block: a 64-bit hash of both."""
        return hash(self)


NOTHING = Content(0, ())


def root(request: Request) -> Identity:
    """The identity of the empty prefix: the adapter decides all KV behind it."""
    return hash((_ROOT, request.lora_id))


def letters(request: Request, tokens: Sequence[int], start: int) -> tuple[Letter, ...]:
    """One letter for each token, the first of which stands at `start`: the token, or its place in an encoder item."""
    if not request.items:
        return tuple(tokens)
    spelled = list(tokens)
    for item in request.items:
        for position in range(max(item.offset, start), min(item.end, start + len(tokens))):
            spelled[position - start] = hash((_IN_ITEM, item.content, position - item.offset))
    return tuple(spelled)


class Shadow:
    """The content of every block that holds something."""

    __slots__ = ("blocks",)

    def __init__(self) -> None:
        self.blocks: dict[int, Content] = {}

    def write(self, block: int, content: Content) -> None:
        self.blocks[block] = content

    def clear(self, block: int) -> None:
        self.blocks.pop(block, None)

    def read(self, block: int) -> Content:
        return self.blocks.get(block, NOTHING)
