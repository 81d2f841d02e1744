"""The waiting queue: who waits for admission, first come, first served (Q-1).

Keyed by request id, so that an abort from the middle costs O(1).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence

from reference.live_request import LiveRequest


class WaitingQueue:
    """Requests in the order in which they will be examined."""

    def __init__(self) -> None:
        self._requests: OrderedDict[str, LiveRequest] = OrderedDict()

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[LiveRequest]:
        return iter(self._requests.values())

    def append(self, request: LiveRequest) -> None:
        """A new arrival goes to the back (ST-4)."""
        self._requests[request.request_id] = request

    def push_front(self, request: LiveRequest) -> None:
        """A preempted request goes before everybody else (PRE-3)."""
        self._requests[request.request_id] = request
        self._requests.move_to_end(request.request_id, last=False)

    def put_back(self, skipped: Sequence[LiveRequest]) -> None:
        """Skipped requests return to the front in the order in which they stood (Q-3)."""
        for request in reversed(skipped):
            self.push_front(request)

    def front(self) -> LiveRequest:
        """Who is examined next; StopIteration if nobody waits."""
        return next(iter(self._requests.values()))

    def pop_front(self) -> LiveRequest:
        """Take the front out; KeyError if nobody waits."""
        return self._requests.popitem(last=False)[1]

    def remove(self, request: LiveRequest) -> None:
        """Take a request out of wherever it stands; KeyError if it does not wait (ABT-1)."""
        del self._requests[request.request_id]
