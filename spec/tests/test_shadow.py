"""Shadow memory: equal contents, equal KV, whoever computed it; a block without content holds nothing."""

from __future__ import annotations

from typing import Any

import pytest

from spec.shadow import NOTHING, Content, Shadow, letters, root
from spec.tests.build import request
from spec.vocabulary import EncoderItem, Request

TEXT = (1, 2, 3, 4, 5, 6)
ITEM = (EncoderItem(2, 2, 7),)


def content(asking: Request, end: int = 6) -> Content:
    return Content(root(asking), letters(asking, asking.prompt_token_ids[:end], 0))


DIFFERENCES: tuple[tuple[str, dict[str, Any], bool], ...] = (
    ("the id", {"name": "b"}, True),
    ("the cap", {"max_tokens": 1}, True),
    ("the priority", {"priority": 1}, True),
    ("a token", {"prompt": (1, 2, 3, 9, 5, 6)}, False),
    ("the order", {"prompt": (2, 1, 3, 4, 5, 6)}, False),
    ("the adapter", {"lora_id": 1}, False),
    ("an item", {"items": ITEM}, False),
)


@pytest.mark.parametrize(("changes", "equal"), [row[1:] for row in DIFFERENCES], ids=[row[0] for row in DIFFERENCES])
def test_what_decides_kv(changes: dict[str, Any], equal: bool) -> None:
    ours, theirs = content(request(prompt=TEXT)), content(request(**{"prompt": TEXT, **changes}))
    assert (ours == theirs) is equal
    assert (ours.identity == theirs.identity) is equal


@pytest.mark.parametrize(
    ("prompt", "item", "equal"),
    [
        ((1, 2, 9, 9, 5, 6), EncoderItem(2, 2, 7), True),
        (TEXT, EncoderItem(2, 2, 8), False),
        (TEXT, EncoderItem(1, 2, 7), False),
        ((9, 2, 3, 4, 5, 6), EncoderItem(2, 2, 7), False),
    ],
    ids=["another placeholder", "another content", "another place", "a token outside"],
)
def test_within_an_item_its_content_counts_and_the_token_does_not(
    prompt: tuple[int, ...], item: EncoderItem, equal: bool
) -> None:
    assert (content(request(prompt=TEXT, items=ITEM)) == content(request(prompt=prompt, items=(item,)))) is equal


@pytest.mark.parametrize("items", [(), ITEM], ids=["text", "item"])
def test_letters_spelled_in_pieces_are_the_same(items: tuple[EncoderItem, ...]) -> None:
    asking = request(prompt=TEXT, items=items)
    pieces = letters(asking, TEXT[:3], 0) + letters(asking, TEXT[3:], 3)
    assert pieces == letters(asking, TEXT, 0)


def test_the_prefix_before_a_block_is_part_of_its_content() -> None:
    assert Content(1, (5,)).identity != Content(2, (5,)).identity


def test_a_block_that_was_never_written_holds_nothing() -> None:
    assert Shadow().read(3) == NOTHING


def test_a_block_holds_what_was_written_last_until_it_is_cleared() -> None:
    shadow = Shadow()
    shadow.write(3, Content(1, (5,)))
    shadow.write(3, Content(1, (6,)))
    assert shadow.read(3) == Content(1, (6,))
    shadow.clear(3)
    shadow.clear(3)
    assert shadow.read(3) == NOTHING
