"""One scheduler with everything that is seen of it, one move at a time, judged by every law.

Between two moves the world is a value (`canonical`); within one it is the spec that runs, its observer, and
nothing else.  How long nothing new was computed (STARVE) is not counted here: `liveness` decides it on the graph.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from spec import laws, lifecycle, outcome, scheduler
from spec.events import Abort, Add, Event, GrammarReady, Reset, StepEvent
from spec.explore.scope import Scope
from spec.explore.stakes import at_stake
from spec.laws import Violation
from spec.model import Script, answer
from spec.moves import Move, event, possible
from spec.observer import Inspection, Observer
from spec.pool import Key
from spec.recount import recount
from spec.state import State
from spec.vocabulary import Refused


class KeysByContent(dict[tuple[object, ...], Key]):
    """A key table in which a key does not depend on which content came first, so that states can be compared.

    Keys are hashes of numbers; two contents of one hash raise.
    """

    def __init__(self) -> None:
        super().__init__()
        self._meanings: dict[Key, tuple[object, ...]] = {}

    def setdefault(self, meaning: tuple[object, ...], default: Key | None = None) -> Key:
        key = self.get(meaning)
        if key is None:
            key = hash(meaning)
            if self._meanings.setdefault(key, meaning) != meaning:
                raise ValueError(f"two contents under one key: {meaning}, {self._meanings[key]}")
            self[meaning] = key
        return key


class World:
    """One moment of a scope.

    gone  offers that came and ended, and do not come again
    """

    __slots__ = ("gone", "observer", "scope", "scripts", "state")

    def __init__(self, scope: Scope, keys: KeysByContent) -> None:
        self.scope = scope
        self.state = State(scope.config, scope.profile)
        self.state.key_table = keys
        self.observer = Observer(scope.config)
        self.gone: set[str] = set()
        self.scripts: dict[str, Script] = {offer.request.request_id: offer.script for offer in scope.offers}

    def moves(self) -> list[Move]:
        """Everything that can happen next, in a fixed order."""
        targets = possible(self.observer, self.arrivals(), self.scope.allowed)
        return [Move(kind, target) for kind, found in targets.items() for target in found]

    def arrivals(self) -> list[str]:
        """Who may come: not live, not gone, and not ended since the last plan, which still has to say so."""
        busy = {*self.observer.live, *self.observer.ended, *self.gone}
        return [request_id for request_id in self.scope.ids if request_id not in busy]

    @property
    def runnable(self) -> bool:
        """Whether a step owes progress: somebody is live and waits for no grammar."""
        return any(seen.grammar_ready for seen in self.observer.live.values())


class Outcome(NamedTuple):
    """What a move led to: the rows of the spec's micro-steps, laws that were at stake, laws that broke."""

    rows: tuple[tuple[str, str], ...]
    stakes: tuple[str, ...]
    violations: list[Violation]


def advance(world: World, move: Move) -> Outcome:
    """Makes a move and judges it by every law, and the spec's counts; tolerated breaches are left out."""
    observer = world.observer
    world.state.log.clear()
    observer.meanings = meanings(world)
    stakes: list[str] = []
    before = set(observer.live)
    try:
        happened = event(move, world.scope.offer)
        found = _step(world, stakes) if isinstance(happened, StepEvent) else _apply(world, happened)
        found = found or laws.check_inspection(observer, inspect(world.state)) or recount(world.state)
    except Exception as error:  # a sabotaged spec may do anything
        found = [Violation("ANSWER", f"{type(error).__name__}", f"{move.kind} {move.target}: {error}")]
    if not world.scope.again:
        world.gone |= before - set(observer.live)
    forget(world)
    return Outcome(tuple(world.state.log), tuple(stakes), _untolerated(world, found))


def _apply(world: World, happened: Event) -> list[Violation]:
    state, observer = world.state, world.observer
    match happened:
        case Add(request):
            unlawful = laws.check_add(observer, request)
            try:
                lifecycle.add(state, request)
            except Refused as refused:
                return [] if unlawful else [Violation("ANSWER", "refused", f"{request.request_id}: {refused}")]
            observer.add(request)
            return unlawful
        case Abort(request_id):
            lifecycle.abort(state, request_id)
            observer.abort(request_id)
        case GrammarReady(request_id):
            lifecycle.grammar_ready(state, request_id)
            observer.grammar_ready(request_id)
        case Reset():
            lifecycle.reset_prefix_cache(state)
    return []


def _step(world: World, stakes: list[str]) -> list[Violation]:
    """Schedule, let the model answer, commit; judged as `lockstep` judges an implementation."""
    state, observer = world.state, world.observer
    plan = scheduler.schedule(state)
    if found := laws.check_plan(observer, plan):
        return found
    step = observer.apply(plan)
    stakes.extend(at_stake(state, observer, step))
    if found := _untolerated(world, laws.check_step(observer, step)):
        return found
    output = answer(world.scope.config, observer, world.scripts, plan)
    result = outcome.commit(state, plan, output)
    if found := laws.check_answer(observer, step, result):
        return found
    return laws.check_result(observer, observer.settle(step, output, result))


def _untolerated(world: World, found: list[Violation]) -> list[Violation]:
    return [violation for violation in found if violation.law not in world.scope.tolerated]


def meanings(world: World) -> dict[Hashable, int]:
    """What the keys that are published now name: those of blocks that lost theirs are forgotten."""
    shadow = world.observer.shadow
    return {key: shadow.read(block).identity for block, key in world.state.pool.key_of.items()}


def forget(world: World) -> None:
    """Drops what no law may rely on any more, so that equal worlds are equal values.

    A free block without a key holds nothing that may be read.  The counters of STARVE are history.
    """
    pool, observer = world.state.pool, world.observer
    for block in [block for block in observer.shadow.blocks if not pool.refs[block] and block not in pool.key_of]:
        observer.shadow.clear(block)
    observer.head, observer.stale_steps = None, 0


def inspect(state: State) -> Inspection:
    """The inside of the spec, shown as an implementation shows its own."""
    pool = state.pool
    ids = state.live.keys()
    return Inspection(
        running=tuple(live.request.request_id for live in state.running),
        waiting=tuple(live.request.request_id for live in state.waiting),
        computed={request_id: live.computed for request_id, live in state.live.items()},
        tables={request_id: live.table for request_id, live in state.live.items()},
        free_blocks=len(pool.free),
        refs=dict(enumerate(pool.refs)),
        keys=pool.key_of,
        free_order=tuple(pool.free),
        encoder_free=state.encoder_free,
        leftovers=tuple(
            f"live: {live.request.request_id}"
            for live in (*state.running, *state.waiting)
            if live.request.request_id not in ids
        ),
    )
