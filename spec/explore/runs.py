"""A way through a graph as a run that anybody can replay.

The graph names requests by slot and moves through representatives; a run has ids of its own.  Each time that a
request comes, it comes under a new id, because no client uses one twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from spec.events import Abort, Add, Event, GrammarReady, Reset, StepEvent
from spec.explore.canonical import Slot, value_of
from spec.explore.scope import Scope
from spec.explore.world import KeysByContent, World, advance
from spec.moves import STRANGER, Move, event


def run_of(scope: Scope, moves: Iterable[Move], *, rename: bool = True) -> list[Event]:
    """The events of a way from the initial state, whose moves name slots."""
    return follow(scope, moves, rename=rename)[0]


def follow(scope: Scope, moves: Iterable[Move], *, rename: bool = True) -> tuple[list[Event], dict[Slot, str]]:
    """The events of a way, and under which id each slot came last."""
    world = World(scope, KeysByContent())
    come: Counter[str] = Counter()
    events = []
    for move in moves:
        meant = concrete(world, move, rename=rename)
        if meant.kind == "add":
            come[meant.target] += 1
        events.append(_told(event(meant, scope.offer), come))
        advance(world, meant)
    slots = value_of(world, rename=rename)[1]
    return events, {slot: _name(request_id, come) for request_id, slot in slots.items()}


def describe(events: Iterable[Event]) -> str:
    """A run in one line."""
    return ", ".join(_word(happened) for happened in events)


def _word(happened: Event) -> str:
    match happened:
        case Add(request):
            return f"add {request.request_id}"
        case Abort(request_id):
            return f"abort {request_id}"
        case GrammarReady(request_id):
            return f"grammar of {request_id} ready"
        case Reset():
            return "reset"
        case StepEvent():
            return "step"


def concrete(world: World, move: Move, *, rename: bool = True) -> Move:
    """The move of this very world that the move of its representative stands for."""
    if move.target not in world.scope.index_of:
        return move
    slot = world.scope.index_of[move.target]
    slots = value_of(world, rename=rename)[1]
    return Move(move.kind, next(request_id for request_id in world.scope.ids if slots[request_id] == slot))


def _told(happened: Event, come: Counter[str]) -> Event:
    match happened:
        case Add(request, script):
            return Add(replace(request, request_id=_name(request.request_id, come)), script)
        case Abort(request_id) if request_id != STRANGER:
            return Abort(_name(request_id, come))
        case GrammarReady(request_id):
            return GrammarReady(_name(request_id, come))
    return happened


def _name(request_id: str, come: Counter[str]) -> str:
    times = come[request_id]
    return request_id if times <= 1 else f"{request_id}.{times}"
