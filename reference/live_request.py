"""A live request: what the scheduler knows of one request between `add` and its end.

All of a request's state stands here, so that dropping the object drops the state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from spec.vocabulary import EncoderItem, Request, Status


@dataclass(slots=True, eq=False)
class LiveRequest:
    """Counts are in tokens unless the name says blocks.

    `computed` counts what has been scheduled, executed or not; `published_blocks` the leading
    blocks of the table that are in the prefix index; `keys` the prefix keys known so far, which
    outlive a preemption (HASH-4).
    """

    request: Request
    status: Status
    tokens: list[int]
    item_ends: tuple[int, ...]
    computed: int = 0
    drafts: tuple[int, ...] = ()
    table: list[int] = field(default_factory=list)
    published_blocks: int = 0
    keys: list[int] = field(default_factory=list)
    grammar_is_ready: bool = False

    @classmethod
    def arriving(cls, request: Request) -> LiveRequest:
        """A request as it enters the waiting queue (ST-3)."""
        return cls(
            request=request,
            status=Status.WAITING_FOR_GRAMMAR if request.needs_grammar else Status.WAITING,
            tokens=list(request.prompt_token_ids),
            item_ends=tuple(item.end for item in request.items),
        )

    @property
    def request_id(self) -> str:
        return self.request.request_id

    @property
    def outputs(self) -> int:
        """How many tokens were generated."""
        return len(self.tokens) - len(self.request.prompt_token_ids)

    def items_within(self, start: int, end: int) -> Iterator[tuple[int, EncoderItem]]:
        """The items that overlap the positions `start .. end`, with their numbers, in order."""
        number = bisect_right(self.item_ends, start)
        while number < len(self.item_ends) and self.request.items[number].offset < end:
            yield number, self.request.items[number]
            number += 1

    def schedule_drafts(self, end: int) -> tuple[int, ...]:
        """The drafts that a grant up to position `end` verifies; the others are dropped.

        A grant that ends before the first draft keeps them all for a later step (SPEC-2).
        """
        verified = end - len(self.tokens)
        if verified <= 0:
            return ()
        self.drafts = self.drafts[:verified]
        return self.drafts
