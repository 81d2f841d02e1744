"""How requests come and go outside a step; a refused call changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from spec.allocation import Step
from spec.encoder import cache_item
from spec.lifecycle import abort, add, grammar_ready, release_table, reset_prefix_cache
from spec.running import preempt_one
from spec.state import State
from spec.tests.build import ENCODER, admitted, names, request, snapshot, state
from spec.vocabulary import EncoderItem, Refused, Request, Status


def test_a_new_request_goes_to_the_tail() -> None:
    built = state(request("a"))
    add(built, request("b"))
    assert names(list(built.waiting)) == ["a", "b"]
    assert built.live["b"].status is Status.WAITING


def test_a_request_with_a_grammar_waits_for_it() -> None:
    built = state()
    add(built, request("a", needs_grammar=True))
    assert built.live["a"].status is Status.WAITING_FOR_GRAMMAR


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (request("a", 5), "id: a is live"),
        (request("b", 32, 1), "pool: needs up to 8 blocks alone, 7 usable"),
        (request("b", 21, 9), "pool: needs up to 8 blocks alone, 7 usable"),
    ],
)
def test_a_refused_request_changes_nothing(refused: Request, reason: str) -> None:
    built = admitted(request("a"), num_blocks=8)
    before = snapshot(built)
    with pytest.raises(Refused) as caught:
        add(built, refused)
    assert str(caught.value) == reason
    assert snapshot(built) == before


def test_an_id_can_be_used_again_once_it_has_ended() -> None:
    built = state(request("a"))
    abort(built, "a")
    add(built, request("a"))
    assert built.finished == ["a"]


# --- the end ------------------------------------------------------------------------------------


def waiting(asking: Request) -> State:
    return state(asking, **ENCODER)


def running(asking: Request) -> State:
    built = admitted(asking, **ENCODER)
    assert built.running[0].cached
    return built


def preempted(asking: Request) -> State:
    built = running(asking)
    preempt_one(built, Step(built.config))
    return built


@pytest.mark.parametrize(
    ("situation", "changes", "status"),
    [
        (waiting, {}, Status.WAITING),
        (waiting, {"needs_grammar": True}, Status.WAITING_FOR_GRAMMAR),
        (running, {}, Status.RUNNING),
        (preempted, {}, Status.PREEMPTED),
    ],
    ids=lambda value: value if isinstance(value, Status) else "",
)
def test_an_abort_in_any_state_frees_everything(situation: Any, changes: dict[str, Any], status: Status) -> None:
    built = situation(request("a", 6, items=(EncoderItem(1, 4, 9),), **changes))
    assert built.live["a"].status is status
    abort(built, "a")
    assert (len(built.pool.free), built.encoder_free) == (8, 8)
    assert not built.live
    assert not built.running
    assert not built.waiting
    assert built.finished == ["a"]


@pytest.mark.parametrize("call", [abort, grammar_ready], ids=lambda call: call.__name__)
def test_an_unknown_id_is_ignored(call: Any) -> None:
    built = admitted(request("a"))
    before = snapshot(built)
    call(built, "nobody")
    assert snapshot(built) == before


def test_an_abort_leaves_others_in_their_places() -> None:
    built = state(request("a"), request("b"), request("c"))
    abort(built, "b")
    assert names(list(built.waiting)) == ["a", "c"]


@pytest.mark.parametrize(("caching", "order"), [(True, [3, 2, 1]), (False, [1, 2, 3])])
def test_a_table_is_given_back_tail_first_with_caching_on(caching: bool, order: list[int]) -> None:
    built = admitted(request("a", 12), enable_prefix_caching=caching)
    release_table(built, built.live["a"])
    assert list(built.pool.free)[-3:] == order
    assert (built.live["a"].table, built.live["a"].published) == ([], 0)


def test_a_ready_grammar_is_not_noticed_before_the_request_is_examined() -> None:
    built = state(request("a", needs_grammar=True))
    grammar_ready(built, "a")
    assert built.live["a"].status is Status.WAITING_FOR_GRAMMAR
    assert built.live["a"].grammar_ready


def test_a_grammar_can_be_ready_twice() -> None:
    built = state(request("a", needs_grammar=True))
    grammar_ready(built, "a")
    before = snapshot(built)
    grammar_ready(built, "a")
    assert snapshot(built) == before


def test_the_prefix_cache_is_reset_only_while_no_block_is_held() -> None:
    built = admitted(request("a", 8))
    before = snapshot(built)
    assert not reset_prefix_cache(built)
    assert snapshot(built) == before
    abort(built, "a")
    assert reset_prefix_cache(built)
    assert not built.pool.key_of


def test_a_finished_request_gives_its_encoder_entries_back() -> None:
    built = waiting(request("a", 6, items=(EncoderItem(1, 4, 9),)))
    cache_item(built, built.live["a"], 0)
    abort(built, "a")
    assert built.freed == [("a", 0)]
