"""What can happen next: one table, which random runs draw from and the explorer exhausts.

A kind of event can happen when it has targets.  Who is live is known from the observer, so the table serves
any scheduler; who may come is known to the run, which says so as `arrivals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from spec.events import Abort, Add, Event, GrammarReady, Reset, StepEvent
from spec.observer import Observer

NOBODY = ""
"""The target of what concerns no request in particular."""

STRANGER = "nobody"
"""An id that is never live."""


class Move(NamedTuple):
    """Something that can happen: its kind, and the id of the request that it concerns."""

    kind: str
    target: str = NOBODY


Targets = Callable[[Observer, Sequence[str]], Sequence[str]]

KINDS: Mapping[str, Targets] = {
    "step": lambda observer, arrivals: (NOBODY,),
    "add": lambda observer, arrivals: arrivals,
    "abort": lambda observer, arrivals: tuple(observer.live),
    "abort anyone": lambda observer, arrivals: (*observer.live, STRANGER) if observer.live else (),
    "grammar ready": lambda observer, arrivals: tuple(i for i, s in observer.live.items() if not s.grammar_ready),
    "reset": lambda observer, arrivals: (NOBODY,),
    "add twice": lambda observer, arrivals: tuple(observer.live),
}
"""Every kind of event, with the requests that it can concern at the moment; none, if it cannot happen."""


def possible(observer: Observer, arrivals: Sequence[str], allowed: Sequence[str]) -> dict[str, Sequence[str]]:
    """The kinds among `allowed` that can happen next, in that order, each with its targets."""
    targets = {kind: KINDS[kind](observer, arrivals) for kind in allowed}
    return {kind: found for kind, found in targets.items() if found}


def event(move: Move, offer: Callable[[str], Add]) -> Event:
    """The event of a move; `offer` makes the request that comes under an id."""
    match move.kind:
        case "step":
            return StepEvent()
        case "add" | "add twice":
            return offer(move.target)
        case "abort" | "abort anyone":
            return Abort(move.target)
        case "grammar ready":
            return GrammarReady(move.target)
        case "reset":
            return Reset()
    raise ValueError(f"no kind of event: {move.kind}")
