"""Each count that the spec keeps: off once, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import pytest

from spec.laws import Violation
from spec.recount import ID, recount
from spec.state import State
from spec.tests.build import ENCODER, admitted, request
from spec.vocabulary import EncoderItem

ITEM = (EncoderItem(0, 4, 7),)


def running() -> State:
    """`a` and `b` share blocks 1 and 2, `b` and `c` have 3 and 4 alone; 5 to 8 are free."""
    a, b = request("a", range(8), items=ITEM), request("b", range(10), items=ITEM)
    return admitted(a, b, request("c", 3), **ENCODER)


class Slip(NamedTuple):
    """One thing that the spec could forget, and the lemmas or laws that it breaks."""

    what: str
    make: Callable[[State], object]
    broken: set[str]


SLIPS = (
    Slip("a reference too many", lambda s: s.pool.refs.__setitem__(1, 3), {"REFERENCES"}),
    Slip("a reference too few", lambda s: s.pool.refs.__setitem__(1, 1), {"REFERENCES"}),
    Slip("a held block without references", lambda s: s.pool.refs.__setitem__(3, 0), {"REFERENCES", "PARTITION"}),
    Slip("a free block with a reference", lambda s: s.pool.refs.__setitem__(5, 1), {"REFERENCES", "PARTITION"}),
    Slip("the reserved block is held", lambda s: s.pool.refs.__setitem__(0, 1), {"REFERENCES", "PARTITION"}),
    Slip("a table forgets a block", lambda s: s.live["c"].table.pop(), {"REFERENCES"}),
    Slip("a table holds a stranger's block", lambda s: s.live["c"].table.append(3), {"REFERENCES"}),
    Slip("no references", lambda s: s.pool.refs.__setitem__(slice(9), [0] * 9), {"REFERENCES", "PARTITION", "PARTS"}),
    Slip("a free block is not in the queue", lambda s: s.pool.free.popitem(), {"PARTITION"}),
    Slip("no free block is in the queue", lambda s: s.pool.free.clear(), {"PARTITION", "SET"}),
    Slip("a held block is in the free queue", lambda s: s.pool.free.__setitem__(3, None), {"PARTITION"}),
    Slip("the reserved block is free", lambda s: s.pool.free.__setitem__(0, None), {"PARTITION"}),
    Slip("a holder lost its key", lambda s: s.pool.key_of.pop(1), {"KEY"}),
    Slip("a holder has another key", lambda s: s.pool.key_of.__setitem__(1, 2), {"KEY"}),
    Slip("a key on a block that does not hold it", lambda s: s.pool.key_of.__setitem__(3, 9), {"KEY"}),
    Slip("a key lost its holder", lambda s: s.pool.holders[1].clear(), {"KEY"}),
    Slip("a key without holders", lambda s: s.pool.holders.__setitem__(9, {}), {"KEY"}),
    Slip("a token too many is known", lambda s: setattr(s.live["b"], "known", 11), {"CONTENT"}),
    Slip("more published than held", lambda s: setattr(s.live["b"], "published", 4), {"KEY"}),
    Slip("less than nothing published", lambda s: setattr(s.live["b"], "published", -1), {"KEY"}),
    Slip("encoder space lost", lambda s: setattr(s, "encoder_free", s.encoder_free - 1), {"CAPS"}),
    Slip("a cached item forgotten", lambda s: s.live["a"].cached.clear(), {"CAPS"}),
    Slip("in two queues", lambda s: s.waiting.append(s.live["b"]), {"STATE"}),
    Slip("in no queue", lambda s: s.running.pop(), {"STATE"}),
)


def _signatures(found: Iterable[Violation]) -> set[str]:
    return {violation.signature for violation in found}


def test_a_state_that_counts_right() -> None:
    assert recount(running()) == []
    assert recount(running(), range(1, 9), ("a", "b", "c", "gone")) == []


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.what)
def test_what_is_off_is_named(slip: Slip) -> None:
    state = running()
    slip.make(state)
    found = recount(state)
    assert _signatures(found) == slip.broken
    assert {violation.law for violation in found} == {ID}


TOUCHED = {
    "a held block without references": {"PARTITION"},
    "a free block is not in the queue": {"PARTITION"},
    "a held block is in the free queue": {"PARTITION"},
    "a key on a block that does not hold it": {"KEY"},
    "a token too many is known": {"CONTENT"},
    "more published than held": {"KEY"},
}
"""Slips that a look at blocks 3 and 8 and at `b` must find as well."""


@pytest.mark.parametrize("slip", [slip for slip in SLIPS if slip.what in TOUCHED], ids=lambda slip: slip.what)
def test_what_is_off_where_it_was_touched(slip: Slip) -> None:
    state = running()
    slip.make(state)
    assert _signatures(recount(state, (3, 8), ("b",))) == TOUCHED[slip.what]
    assert recount(state, (1, 2), ("a",)) == []
