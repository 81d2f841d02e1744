"""Shadow memory: whose KV each slot of the pool holds, without any tensor.

The KV of a position is decided by its token, by whatever else changes KV there, and by everything
before it, never by the request that computed it.  A chain of identities stands for that:
equal chains, equal KV.  A block is remembered as the leading run of its slots that belongs to one
chain; what was written elsewhere in it cannot be read by anybody.
"""

from __future__ import annotations

from collections.abc import Sequence

from spec.vocabulary import Request

Identity = int

_ROOT = 0x5C4ED
_IN_ITEM = 0x17E3


def extend_chain(chain: list[Identity], request: Request, tokens: Sequence[int], end: int) -> None:
    """Appends the identities of the positions `len(chain) .. end`.

    `tokens` are the tokens at these positions.  Identities are 64-bit hashes of (identity before, token),
    with the adapter at the root and the encoder item mixed in where a position lies in one.
    """
    start = len(chain)
    identity = chain[-1] if chain else hash((_ROOT, request.lora_id))
    if not request.items:
        for token in tokens:
            identity = hash((identity, token))
            chain.append(identity)
        return
    for position, token in enumerate(tokens, start):
        for item in request.items:
            if item.offset <= position < item.end:
                token = hash((_IN_ITEM, item.content, position - item.offset))
        identity = hash((identity, token))
        chain.append(identity)
    assert len(chain) == end


class Shadow:
    """The leading run of one chain in each block that was ever written."""

    __slots__ = ("block_size", "runs")

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.runs: dict[int, list[Identity]] = {}

    def write(self, table: Sequence[int], chain: Sequence[Identity], start: int, end: int) -> None:
        """Writes the positions `start .. end` of a request through its table, as far as the table reaches."""
        size = self.block_size
        for position in range(start, min(end, len(table) * size)):
            offset = position % size
            run = self.runs.setdefault(table[position // size], [])
            if offset < len(run):
                if run[offset] == chain[position]:
                    continue
                del run[offset:]
            if offset == len(run) and (offset == 0 or run[-1] == chain[position - 1]):
                run.append(chain[position])

    def whole(self, block: int) -> Identity | None:
        """The identity of the last slot, if the block is completely written by one chain."""
        run = self.runs.get(block)
        return run[-1] if run is not None and len(run) == self.block_size else None

    def written(self, block: int) -> int:
        """How many leading slots of the block hold one chain."""
        return len(self.runs.get(block, ()))
