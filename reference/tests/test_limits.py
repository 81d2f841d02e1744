"""Stop rules in their order, and the footprint of a request."""

from __future__ import annotations

import pytest

from reference.limits import ceil_div, finish_after, footprint_blocks
from reference.live_request import LiveRequest
from reference.tests.driving import config
from spec.vocabulary import Finish, FinishReason, Request

STOP_CASES = [
    # (sampled so far, finish, what the case shows)
    ((5,), None, "goes on"),
    ((7,), Finish("a", FinishReason.STOP), "eos"),
    ((8,), Finish("a", FinishReason.STOP, 8), "a stop id is named"),
    ((5, 5, 5), Finish("a", FinishReason.LENGTH), "max_tokens"),
    ((5, 5, 7), Finish("a", FinishReason.STOP), "eos at the last position"),
    ((5, 5, 8), Finish("a", FinishReason.STOP, 8), "stop id at the last position"),
]


@pytest.mark.parametrize(("sampled", "finish", "shows"), STOP_CASES)
def test_stop_order(sampled: tuple[int, ...], finish: Finish | None, shows: str) -> None:
    request = Request("a", (1, 2), 3, eos_token_id=7, stop_token_ids=(8, 7))
    live = LiveRequest.arriving(request)
    live.tokens.extend(sampled)
    assert finish_after(live, sampled[-1], config()) == finish, shows


def test_an_ignored_eos_can_still_be_a_stop_id() -> None:
    live = LiveRequest.arriving(Request("a", (1,), 3, eos_token_id=7, ignore_eos=True, stop_token_ids=(7,)))
    live.tokens.append(7)
    assert finish_after(live, 7, config()) == Finish("a", FinishReason.STOP, 7)


def test_the_model_length_ends_a_request() -> None:
    live = LiveRequest.arriving(Request("a", (1, 2, 3), 30))
    live.tokens.append(5)
    assert finish_after(live, 5, config(max_model_len=5)) is None
    assert finish_after(live, 5, config(max_model_len=4)) == Finish("a", FinishReason.LENGTH)


FOOTPRINTS = [
    # (prompt, max_tokens, features, blocks of 4)
    (4, 1, {}, 1),
    (4, 2, {}, 2),
    (4, 5, {}, 2),
    (4, 6, {}, 3),
    (4, 500, {}, 16),
    (64, 1, {}, 16),
    (4, 1, {"num_speculative_tokens": 3}, 1),
    (4, 2, {"num_speculative_tokens": 3}, 2),
    (4, 1, {"num_speculative_tokens": 3, "use_eagle": True}, 3),
    (64, 1, {"num_speculative_tokens": 3, "use_eagle": True}, 17),
]


@pytest.mark.parametrize(("prompt", "max_tokens", "features", "blocks"), FOOTPRINTS)
def test_footprint(prompt: int, max_tokens: int, features: dict[str, int], blocks: int) -> None:
    request = Request("a", tuple(range(prompt)), max_tokens)
    assert footprint_blocks(request, config(**features)) == blocks


def test_ceil_div() -> None:
    assert [ceil_div(amount, 4) for amount in (0, 1, 4, 5)] == [0, 1, 1, 2]
