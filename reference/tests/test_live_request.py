"""What a live request knows of itself."""

from __future__ import annotations

import pytest

from reference.live_request import LiveRequest
from spec.vocabulary import EncoderItem, Request, Status


def live_with_items() -> LiveRequest:
    items = (EncoderItem(2, 3, 70), EncoderItem(5, 2, 71), EncoderItem(9, 1, 72))
    return LiveRequest.arriving(Request("a", tuple(range(12)), 4, items=items))


def test_a_grammar_decides_the_first_status() -> None:
    assert LiveRequest.arriving(Request("a", (1,), 1)).status is Status.WAITING
    assert LiveRequest.arriving(Request("a", (1,), 1, needs_grammar=True)).status is Status.WAITING_FOR_GRAMMAR


@pytest.mark.parametrize(
    ("start", "end", "numbers"),
    [
        (0, 2, []),
        (0, 3, [0]),
        (4, 5, [0]),
        (4, 6, [0, 1]),
        (5, 7, [1]),
        (7, 9, []),
        (0, 12, [0, 1, 2]),
        (9, 10, [2]),
        (10, 12, []),
    ],
)
def test_items_overlap_half_open_ranges(start: int, end: int, numbers: list[int]) -> None:
    assert [number for number, _ in live_with_items().items_within(start, end)] == numbers


@pytest.mark.parametrize(
    ("end", "scheduled", "kept"),
    [(11, (), (1, 2, 3)), (12, (), (1, 2, 3)), (14, (1, 2), (1, 2)), (15, (1, 2, 3), (1, 2, 3))],
)
def test_drafts_are_trimmed_only_by_a_grant_that_reaches_them(
    end: int, scheduled: tuple[int, ...], kept: tuple[int, ...]
) -> None:
    live = live_with_items()
    live.drafts = (1, 2, 3)
    assert live.schedule_drafts(end) == scheduled
    assert live.drafts == kept


def test_outputs_count_what_came_after_the_prompt() -> None:
    live = live_with_items()
    assert live.outputs == 0
    live.tokens.extend((1, 2))
    assert live.outputs == 2
