"""The waiting queue: arrivals at the back, preempted and skipped requests at the front."""

from __future__ import annotations

import pytest

from reference.live_request import LiveRequest
from reference.waiting_queue import WaitingQueue
from spec.vocabulary import Request


def live(name: str) -> LiveRequest:
    return LiveRequest.arriving(Request(name, (1,), 1))


def names(queue: WaitingQueue) -> str:
    return "".join(request.request_id for request in queue)


def test_first_come_first_served() -> None:
    queue = WaitingQueue()
    for name in "abc":
        queue.append(live(name))
    queue.push_front(live("p"))
    assert queue.front().request_id == "p"
    assert queue.pop_front().request_id == "p"
    assert names(queue) == "abc"
    assert len(queue) == 3


def test_skipped_requests_return_in_their_order() -> None:
    queue = WaitingQueue()
    for name in "abcd":
        queue.append(live(name))
    queue.put_back([queue.pop_front(), queue.pop_front()])
    assert names(queue) == "abcd"
    queue.put_back([])
    assert names(queue) == "abcd"


def test_removal_from_the_middle() -> None:
    queue = WaitingQueue()
    requests = [live(name) for name in "abc"]
    for request in requests:
        queue.append(request)
    queue.remove(requests[1])
    assert names(queue) == "ac"
    with pytest.raises(KeyError):
        queue.remove(requests[1])
