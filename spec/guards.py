"""Guards are tables.

The guard of an action is an ordered tuple of named conjuncts.  The one table gives the action
its condition, a refusal its reason, coverage its rows and the docs their lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Conjunct(NamedTuple, Generic[T]):
    """One condition of a guard: `holds(view)` lets the action go on, `reason(view)` says why not."""

    name: str
    rule: str
    holds: Callable[[T], bool]
    reason: Callable[[T], str]


class Refusal(NamedTuple):
    """The conjunct that refused, and its reason with the numbers filled in."""

    name: str
    rule: str
    reason: str


class Guard(Generic[T]):
    """The ordered conjuncts of one action."""

    __slots__ = ("_tests", "action", "conjuncts")

    def __init__(self, action: str, conjuncts: tuple[Conjunct[T], ...]) -> None:
        self.action = action
        self.conjuncts = conjuncts
        self._tests = tuple((conjunct.holds, conjunct) for conjunct in conjuncts)

    def refusal(self, view: T) -> Refusal | None:
        """The first conjunct that does not hold, or None if the action may go on."""
        for holds, conjunct in self._tests:
            if not holds(view):
                return Refusal(conjunct.name, conjunct.rule, conjunct.reason(view))
        return None

    def outcomes(self) -> tuple[str, ...]:
        """Every way to leave the guard: each refusal, then `ok`."""
        return (*(conjunct.name for conjunct in self.conjuncts), "ok")
