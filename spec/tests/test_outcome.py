"""After the model has answered: rollback, items, tokens up to a stop, and what is freed at once."""

from __future__ import annotations

from typing import Any

import pytest

from spec.outcome import commit
from spec.scheduler import schedule
from spec.state import State
from spec.tests.build import DRAFTS, EAGLE, ENCODER, admitted, grant, names, plan, request, sample, state
from spec.vocabulary import EncoderItem, Finish, FinishReason, ModelOutput, Request, StepResult

EOS, STOP_ID = 0, 5
STOP, LENGTH = FinishReason.STOP, FinishReason.LENGTH


def said(built: State, *tokens: int, drafts: tuple[int, ...] = (), start: int = 4) -> StepResult:
    """A commit in which the only request was granted its last token and `drafts`, and the model says `tokens`."""
    entry = grant("a", start, 1 + len(drafts), drafts=drafts)
    return commit(built, plan(entry), ModelOutput({"a": tokens}))


def asking(max_tokens: int = 9, **changes: Any) -> Request:
    return request("a", 4, max_tokens, stop_token_ids=(STOP_ID,), **changes)


STOPS: tuple[tuple[str, dict[str, Any], dict[str, Any], int, FinishReason | None, int | None], ...] = (
    ("a word", {}, {}, 7, None, None),
    ("end of sequence", {}, {}, EOS, STOP, None),
    ("end of sequence, ignored", {"ignore_eos": True}, {}, EOS, None, None),
    ("a stop token", {}, {}, STOP_ID, STOP, STOP_ID),
    ("its own cap", {"max_tokens": 1}, {}, 7, LENGTH, None),
    ("the model length", {}, {"max_model_len": 5}, 7, LENGTH, None),
    ("one before the model length", {}, {"max_model_len": 6}, 7, None, None),
    ("end of sequence at the cap", {"max_tokens": 1}, {}, EOS, STOP, None),
    ("a stop token at the model length", {}, {"max_model_len": 5}, STOP_ID, STOP, STOP_ID),
    ("end of sequence, ignored, at the cap", {"ignore_eos": True, "max_tokens": 1}, {}, EOS, LENGTH, None),
)


@pytest.mark.parametrize(
    ("of_request", "of_config", "token", "reason", "stop_token"),
    [row[1:] for row in STOPS],
    ids=[row[0] for row in STOPS],
)
def test_what_ends_a_request(
    of_request: dict[str, Any],
    of_config: dict[str, Any],
    token: int,
    reason: FinishReason | None,
    stop_token: int | None,
) -> None:
    ends = () if reason is None else (Finish("a", reason, stop_token),)
    assert said(admitted(asking(**of_request), **of_config), token) == StepResult((("a", (token,)),), ends)


def test_end_of_sequence_comes_before_a_stop_token_of_the_same_id() -> None:
    both = Request("a", (1, 2, 3, 4), 9, eos_token_id=5, stop_token_ids=(5,))
    assert said(admitted(both), 5).finished == (Finish("a", STOP, None),)


def test_what_was_sampled_behind_a_stop_is_dropped() -> None:
    result = said(admitted(asking(), **DRAFTS), 7, STOP_ID, 7, drafts=(7, STOP_ID))
    assert result == StepResult((("a", (7, STOP_ID)),), (Finish("a", STOP, STOP_ID),))


@pytest.mark.parametrize(
    ("tokens", "computed", "outcome"),
    [((7,), 5, "some rejected"), ((7, 7), 6, "some rejected"), ((7, 7, 7), 7, "all accepted")],
)
def test_rejected_drafts_are_computed_again(tokens: tuple[int, ...], computed: int, outcome: str) -> None:
    built = admitted(asking(), **DRAFTS)
    sample(built, "a", 7)
    built.live["a"].computed = 7
    said(built, *tokens, drafts=(8, 8))
    live = built.live["a"]
    assert (live.computed, live.known) == (computed, 5 + len(tokens))
    assert ("verify", outcome) in built.log


def test_rejected_drafts_roll_back_before_items_are_freed() -> None:
    built = admitted(request("a", 6, 9, items=(EncoderItem(2, 4, 7),)), **ENCODER, **DRAFTS)
    built.live["a"].computed = 7
    said(built, 7, drafts=(8, 8))
    assert built.live["a"].computed == 5
    assert not built.freed


def test_consumed_items_are_freed() -> None:
    built = admitted(request("a", 6, 9, items=(EncoderItem(2, 4, 7),)), **ENCODER)
    said(built, 7)
    assert (built.freed, built.encoder_free) == ([("a", 0)], 8)


@pytest.mark.parametrize(("changes", "kept"), [({}, ()), (DRAFTS, (8, 9)), (EAGLE, (8, 9))])
def test_new_drafts_replace_the_old_if_there_is_a_drafter(changes: dict[str, Any], kept: tuple[int, ...]) -> None:
    built = admitted(asking(), **changes)
    commit(built, plan(grant("a", 3, 1)), ModelOutput({"a": (7,)}, {"a": (8, 9)}))
    assert built.live["a"].drafts == kept


def test_no_new_drafts_drop_the_old() -> None:
    built = admitted(asking(), **DRAFTS)
    built.live["a"].drafts = (8,)
    said(built, 7)
    assert not built.live["a"].drafts


def test_a_request_that_sampled_nothing_delivers_nothing() -> None:
    built = state(request("a", 8), max_num_batched_tokens=8, long_prefill_token_threshold=4)
    assert commit(built, schedule(built), ModelOutput({})) == StepResult((), ())
    assert names(built.running) == ["a"]


def test_a_request_without_a_grant_is_left_alone() -> None:
    built = admitted(request("a"), request("b"), **DRAFTS)
    built.live["a"].drafts = (8,)
    result = commit(built, plan(grant("b", 3, 1)), ModelOutput({"b": (7,)}))
    assert result.emitted == (("b", (7,)),)
    assert built.live["a"].drafts == (8,)


def test_results_stand_in_the_order_of_the_running_requests() -> None:
    built = admitted(request("a", 4, 1), request("b"), request("c", 4, 1))
    entries = plan(*(grant(name, 3, 1) for name in "cba"))
    result = commit(built, entries, ModelOutput(dict.fromkeys("cba", (7,))))
    assert [name for name, _ in result.emitted] == ["a", "b", "c"]
    assert [end.request_id for end in result.finished] == ["a", "c"]
    assert names(built.running) == ["b"]


def test_a_request_that_ends_frees_everything_before_the_next_is_looked_at() -> None:
    built = admitted(request("a", 8, 1), request("b", 8, 1))
    commit(built, plan(grant("b", 7, 1), grant("a", 7, 1)), ModelOutput({"a": (7,), "b": (7,)}))
    assert list(built.pool.free) == [5, 6, 7, 8, 2, 1, 4, 3]
    assert built.finished == ["a", "b"]
    assert not built.live
