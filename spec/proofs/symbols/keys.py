"""What prefix keys and slots mean: uninterpreted functions, and the one axiom about them.

The key of a block of a request says what the block holds: that request's own prefix.  Equal keys, equal content.
Slots are looked at through one offset, which stands for any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import z3

Term = Any
INT = z3.IntSort()

KEY_OF = z3.Function("the key of", INT, INT, INT)
"""Request and place -> the key of that complete block and everything before it."""
KEY_DEPTH = z3.Function("depth of key", INT, INT)
KEY_CONTENT = z3.Function("content of key", INT, INT)
"""Key -> what a block under it holds at the offset."""
WORD = z3.Function("content of", INT, INT, INT)
"""Request and place -> what that request's own prefix puts at the offset."""
NEW_KEY = z3.Function("key of meaning", INT, INT, INT, INT, INT, INT)


class ItemsOf(NamedTuple):
    """The items that overlap a block of a request, each by its content and its place there."""

    live: Any
    index: Term


def key_axiom(who: Term, place: Term) -> Term:
    """What the key of a block of a request says of that block."""
    key = KEY_OF(who, place)
    return z3.And(KEY_CONTENT(key) == WORD(who, place), KEY_DEPTH(key) == place)
