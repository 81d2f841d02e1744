"""A world as a value, up to renaming of blocks and of equal requests, and back.

Two worlds with equal values go on alike: the value holds all that the spec and the laws read.  Nothing
compares block ids, and nothing in a request but its id tells it from its twin, so a renaming of either carries runs
to runs.  The order of the free queue decides which block goes next and which prefix is evicted: it is state.  So is
what each block holds.

Blocks are numbered in the order of the tables of running requests, then of the free queue.  Twins are
numbered in the order of the queues.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from spec.explore.scope import Scope
from spec.explore.world import KeysByContent, World
from spec.observer import Observer, Seen
from spec.pool import Key, Pool, publish
from spec.shadow import Content
from spec.state import Live
from spec.vocabulary import RESERVED_BLOCK, Status

FRESH, GONE = 0, 1

Slot = int
"""A request by its place in the scope's offers."""


class Request(NamedTuple):
    """A live request.  `seen` is what the observer takes it for, where that is something else."""

    status: str
    grammar_ready: bool
    output: tuple[int, ...]
    computed: int
    drafts: tuple[int, ...]
    table: tuple[int, ...]
    published: int
    keys: tuple[int, ...]
    cached: tuple[int, ...]
    seen: tuple[object, ...] | None


class Value(NamedTuple):
    """A world, renamed.

    refs, keyed, seen_*, ended  None where they follow from the rest, as they do while the laws hold
    """

    requests: tuple[Request | int, ...]
    running: tuple[Slot, ...]
    waiting: tuple[Slot, ...]
    seen_running: tuple[Slot, ...] | None
    seen_waiting: tuple[Slot, ...] | None
    free: tuple[int, ...]
    refs: tuple[int, ...] | None
    published: tuple[tuple[tuple[int, ...], int], ...]
    keyed: tuple[tuple[int, int], ...] | None
    shadow: tuple[tuple[int, int, tuple[int, ...]], ...]
    encoder_free: int
    finished: tuple[Slot, ...]
    ended: tuple[Slot, ...] | None
    freed: tuple[tuple[Slot, int], ...]
    cached: tuple[tuple[Slot, int, int], ...]


# --- to a value ----------------------------------------------------------------------------------


def value_of(world: World, *, rename: bool = True) -> tuple[Value, dict[str, Slot]]:
    """The value of a world, and which slot each offer's id got."""
    slots = _slots(world) if rename else world.scope.index_of
    blocks = _block_names(world) if rename else range(world.scope.config.num_blocks)
    state, observer = world.state, world.observer
    pool = state.pool
    requests: list[Request | int] = [FRESH] * len(world.scope.ids)
    for request_id in world.gone:
        requests[slots[request_id]] = GONE
    for request_id, live in state.live.items():
        requests[slots[request_id]] = _request(live, observer.live.get(request_id), blocks)
    running = _places(slots, (live.request.request_id for live in state.running))
    waiting = _places(slots, (live.request.request_id for live in state.waiting))
    seen_running = _places(slots, observer.running)
    seen_waiting = _places(slots, (seen.request.request_id for seen in observer.waiting))
    finished = tuple(sorted(_places(slots, state.finished)))
    ended = tuple(sorted(_places(slots, observer.ended)))
    refs = tuple(pool.refs)
    return Value(
        tuple(requests),
        running,
        waiting,
        None if seen_running == running else seen_running,
        None if seen_waiting == waiting else seen_waiting,
        tuple([blocks[block] for block in pool.free]),
        None if list(refs) == _references(state.live.values(), len(refs)) else _renamed(refs, blocks),
        tuple(sorted((tuple([blocks[b] for b in held]), key) for key, held in pool.holders.items())),
        None if _keyed(pool.holders) == pool.key_of else tuple((blocks[b], key) for b, key in pool.key_of.items()),
        tuple(sorted((blocks[block], *content) for block, content in observer.shadow.blocks.items())),
        state.encoder_free,
        finished,
        None if ended == finished else ended,
        tuple(sorted((slots[request_id], item) for request_id, item in state.freed)),
        tuple(sorted((slots[request_id], item, n) for (request_id, item), n in observer.cached.items())),
    ), slots


def _places(slots: Mapping[str, Slot], ids: Iterable[str]) -> tuple[Slot, ...]:
    return tuple([slots[request_id] for request_id in ids])


def _references(requests: Iterable[Live], num_blocks: int) -> list[int]:
    refs = [0] * num_blocks
    for live in requests:
        for block in live.table:
            refs[block] += 1
    return refs


def _keyed(holders: Mapping[Key, Iterable[int]]) -> dict[int, Key]:
    return {block: key for key, held in holders.items() for block in held}


def _renamed(refs: tuple[int, ...], blocks: Mapping[int, int] | range) -> tuple[int, ...]:
    named = [0] * len(refs)
    for block, count in enumerate(refs):
        named[blocks[block]] = count
    return tuple(named)


def _request(live: Live, seen: Seen | None, blocks: Mapping[int, int] | range) -> Request:
    prompt = len(live.request.prompt_token_ids)
    output = tuple(live.tokens[prompt:])
    differs = seen is None or not (
        seen.tokens == live.tokens
        and seen.computed == live.computed
        and seen.table == live.table
        and seen.status is _seen_status(live.status)
        and seen.grammar_ready == (live.grammar_ready or not live.request.needs_grammar)
    )
    return Request(
        live.status.value,
        live.grammar_ready,
        output,
        live.computed,
        live.drafts,
        tuple([blocks[block] for block in live.table]),
        live.published,
        tuple(live.keys),
        tuple(sorted(live.cached)),
        _seen_otherwise(seen, prompt, blocks) if differs else None,
    )


def _seen_status(status: Status) -> Status:
    return Status.WAITING if status is Status.WAITING_FOR_GRAMMAR else status


def _seen_otherwise(seen: Seen | None, prompt: int, blocks: Mapping[int, int] | range) -> tuple[object, ...]:
    if seen is None:
        return ()
    table = tuple([blocks[block] for block in seen.table])
    return seen.status.value, seen.grammar_ready, tuple(seen.tokens[prompt:]), seen.computed, table


def _block_names(world: World) -> dict[int, int]:
    names: dict[int, int] = {RESERVED_BLOCK: RESERVED_BLOCK}
    state = world.state
    for live in (*state.running, *state.waiting):
        for block in live.table:
            names.setdefault(block, len(names))
    for block in (*state.pool.free, *range(len(state.pool.refs))):
        names.setdefault(block, len(names))
    return names


def _slots(world: World) -> dict[str, Slot]:
    """Twins share their slots out in the order of the queues, then by what is left of them."""
    scope, state, observer = world.scope, world.state, world.observer
    slots = dict(scope.index_of)
    if len(scope.twins) == len(scope.ids):
        return slots
    queued = [live.request.request_id for live in (*state.running, *state.waiting)]
    place = {request_id: number for number, request_id in enumerate(queued)}

    def rank(index: int) -> tuple[object, ...]:
        request_id = scope.ids[index]
        if request_id in place:
            return (0, place[request_id])
        left = (
            request_id not in state.finished,
            request_id not in observer.ended,
            request_id not in world.gone,
            [item for owner, item in sorted(state.freed) if owner == request_id],
            [item for owner, item in sorted(observer.cached) if owner == request_id],
        )
        return (1, *left)

    for twins in scope.twins:
        for slot, index in zip(twins, sorted(twins, key=rank), strict=True):
            slots[scope.ids[index]] = slot
    return slots


# --- from a value --------------------------------------------------------------------------------


def world_of(scope: Scope, value: Value, keys: KeysByContent) -> World:
    """The world of a value; ids are those of the scope, blocks as in the value."""
    world = World(scope, keys)
    state, observer, ids = world.state, world.observer, scope.ids
    for slot, stored in enumerate(value.requests):
        if stored == GONE:
            world.gone.add(ids[slot])
        elif isinstance(stored, Request):
            live = _live(scope, slot, stored)
            state.live[ids[slot]] = live
            if stored.seen != ():
                observer.live[ids[slot]] = _seen(scope, slot, live, stored.seen)
    state.running = [state.live[ids[slot]] for slot in value.running]
    state.waiting.extend(state.live[ids[slot]] for slot in value.waiting)
    state.encoder_free = value.encoder_free
    state.finished = [ids[slot] for slot in value.finished]
    state.freed = [(ids[slot], item) for slot, item in value.freed]
    _fill_pool(state.pool, value, state.live.values())
    _fill_observer(observer, value, ids)
    return world


def _live(scope: Scope, slot: Slot, stored: Request) -> Live:
    live = Live(scope.offers[slot].request, scope.config.max_model_len)
    live.status = Status(stored.status)
    live.grammar_ready = stored.grammar_ready
    live.tokens.extend(stored.output)
    live.known = len(live.tokens)
    live.computed = stored.computed
    live.drafts = stored.drafts
    live.table = list(stored.table)
    live.published = stored.published
    live.keys = list(stored.keys)
    live.cached = set(stored.cached)
    return live


def _seen(scope: Scope, slot: Slot, live: Live, otherwise: tuple[object, ...] | None) -> Seen:
    seen = Seen(live.request, scope.config)
    if otherwise is None:
        seen.status = _seen_status(live.status)
        seen.grammar_ready = live.grammar_ready or not live.request.needs_grammar
        seen.tokens = list(live.tokens)
        seen.computed = live.computed
        seen.table = list(live.table)
    else:
        status, seen.grammar_ready, output, seen.computed, table = otherwise  # type: ignore[assignment]
        seen.status = Status(status)  # type: ignore[arg-type]
        seen.tokens.extend(output)  # type: ignore[arg-type]
        seen.table = list(table)  # type: ignore[call-overload]
    seen.known = len(seen.tokens)
    return seen


def _fill_pool(pool: Pool, value: Value, requests: Iterable[Live]) -> None:
    pool.free = OrderedDict.fromkeys(value.free)
    pool.refs = _references(requests, len(pool.refs)) if value.refs is None else list(value.refs)
    for held, key in value.published:
        for block in held:
            publish(pool, block, key)
    if value.keyed is not None:
        pool.key_of = dict(value.keyed)


def _fill_observer(observer: Observer, value: Value, ids: tuple[str, ...]) -> None:
    running = value.running if value.seen_running is None else value.seen_running
    waiting = value.waiting if value.seen_waiting is None else value.seen_waiting
    observer.running = {ids[slot]: observer.live[ids[slot]] for slot in running}
    observer.waiting.extend(observer.live[ids[slot]] for slot in waiting)
    observer.ended = [ids[slot] for slot in (value.finished if value.ended is None else value.ended)]
    observer.cached = {(ids[slot], item): length for slot, item, length in value.cached}
    observer.encoder_used = sum(observer.cached.values())
    for seen in observer.live.values():
        for block in seen.table:
            observer.holders[block] = observer.holders.get(block, 0) + 1
    observer.shared = {block for block, holders in observer.holders.items() if holders > 1}
    for block, prefix, letters in value.shadow:
        observer.shadow.write(block, Content(prefix, letters))
