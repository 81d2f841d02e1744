"""The counts that the spec keeps, counted again.

So that no rule has to count, the state says in several places how many there are: references, free blocks, known
tokens, encoder space.  Here they are counted from the tables, the tokens and the items, and the lemmas of `counting`
are asked of the numbers.  What is off is the spec's own mistake, whatever the scheduler beside it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from spec.counting import Claims, counted, hold, inhabited, occurring, once, parted, parts, referred, standing, summed
from spec.laws import Violation
from spec.pool import Pool
from spec.state import Live, State
from spec.vocabulary import RESERVED_BLOCK

ID = "SPEC"
SENTENCE = "What the spec counts is what there is, and it never raises; else the spec is wrong and can judge nobody."

Miscount = tuple[str, str]
"""The lemma that is broken, or the law whose count is off, and the numbers."""

Table = tuple[int, ...]

REMEMBERED = 16
"""A pool of up to so many blocks often looks the same again: what was found of it is remembered."""


def recount(state: State, blocks: Collection[int] | None = None, requests: Collection[str] = ()) -> list[Violation]:
    """Every count that is off between two calls of the scheduler; the signature is its lemma, or the law it serves.

    With `blocks` only what belongs to these and to `requests`, in time that follows their number and not the size of
    pool or tables: how often all tables hold a block is then not counted.
    """
    if blocks is None:
        found = _everything(state)
    else:
        lives = [state.live[request_id] for request_id in requests if request_id in state.live]
        found = chain(_free(state.pool.refs, state.pool.free, blocks), _keyed(state.pool, blocks), _requests(lives))
    return [Violation(ID, lemma, f"the spec counts wrong: {numbers}") for lemma, numbers in found]


def _everything(state: State) -> Iterator[Miscount]:
    pool, lives = state.pool, state.live.values()
    tables = tuple([tuple(live.table) for live in lives])
    blocks = _remembered_blocks if len(pool.refs) <= REMEMBERED else _blocks
    yield from blocks(tuple(pool.refs), tuple(pool.free), tables)
    yield from _keys(pool)
    yield from _requests(lives)
    if len(state.running) + len(state.waiting) != len(lives):
        yield "STATE", f"{len(state.running)} requests run and {len(state.waiting)} wait, {len(lives)} are live"
    if state.config.encoder_cache_size:
        yield from _encoder(state)


@lru_cache(1 << 14)
def _holds(lemma: Callable[..., Claims], *numbers: int) -> bool:
    """Whether a lemma is true of some numbers; the same few come again and again."""
    return hold(lemma(*numbers))


# --- blocks --------------------------------------------------------------------------------------


def _blocks(refs: tuple[int, ...], free: tuple[int, ...], tables: tuple[Table, ...]) -> tuple[Miscount, ...]:
    """All that is counted of blocks."""
    return (
        *_references(refs, tables),
        *_free(refs, set(free), range(len(refs))),
        *_totals(refs, free, tables),
        *chain.from_iterable(map(_remembered_list, tables)),
    )


def _references(refs: tuple[int, ...], tables: tuple[Table, ...]) -> Iterator[Miscount]:
    held = [0] * len(refs)
    for block in chain.from_iterable(tables):
        held[block] += 1
    for block, (references, occurrences) in enumerate(zip(refs, held, strict=True)):
        if not _holds(referred, references, occurrences):
            yield "REFERENCES", f"block {block} has {references} references, tables hold it {occurrences} times"


def _free(refs: Sequence[int], free: Container[int], blocks: Iterable[int]) -> Iterator[Miscount]:
    """A block is free if and only if nobody refers to it; the reserved one never is."""
    for block in blocks:
        if (block in free) is (refs[block] != 0 or block == RESERVED_BLOCK):
            yield "PARTITION", f"block {block} is {'' if block in free else 'not '}free with {refs[block]} references"


def _totals(refs: tuple[int, ...], free: tuple[int, ...], tables: tuple[Table, ...]) -> Iterator[Miscount]:
    usable = len(refs) - 1
    held = len(refs) - refs.count(0)
    if not _holds(parted, len(free), held, usable):
        yield "PARTITION", f"{len(free)} blocks are free and {held} held, {usable} are usable"
    unheld = held < usable
    if not _holds(counted, len(free), unheld) or not _holds(inhabited, len(free), unheld):
        yield "SET", f"{len(free)} blocks are free, {usable - held} have no references"
    second, longest = sorted((0, 0, *map(len, tables)))[-2:]
    if not _holds(parts, sum(refs), longest, second):
        yield "PARTS", f"{sum(refs)} references in all, two tables hold {longest} and {second} blocks"


def _list(table: Table) -> Iterator[Miscount]:
    """What is true of any list, so that only a wrong lemma can be off."""
    size, counts = len(table), Counter(table)
    places = {block: place for place, block in enumerate(table)}
    if not _holds(once, size, len(counts), max(counts.values(), default=0)):
        yield "ONCE", f"{len(counts)} different blocks in {list(table)}"
    for block, count in counts.items():
        if not _holds(occurring, size, count, places[block], table[places[block]] == block):
            yield "MEMBERS", f"block {block} occurs {count} times in {list(table)}, last at {places[block]}"
        if not _holds(summed, size, count):
            yield "TOTAL", f"block {block} occurs {count} times in {list(table)}"
    for place, block in enumerate(table):
        if not _holds(standing, size, place, counts[block], places[block] == place):
            yield "MEMBERS", f"block {block} stands at {place} of {list(table)}, and at {places[block]}"


# Most states of a scope differ in something else than their blocks, and most tables of a run stay from step to step.
_remembered_blocks = lru_cache(1 << 12)(_blocks)
_remembered_list = lru_cache(1 << 12)(lambda table: tuple(_list(table)))


# --- prefix keys ---------------------------------------------------------------------------------


def _keyed(pool: Pool, blocks: Iterable[int]) -> Iterator[Miscount]:
    for block in blocks:
        key = pool.key_of.get(block)
        if key is not None and block not in pool.holders.get(key, ()):
            yield "KEY", f"block {block} has key {key}, but is not among its holders"


def _keys(pool: Pool) -> Iterator[Miscount]:
    """Keys of blocks and holders of keys are each other's inverse; a key that is there has a holder."""
    key_of, held = pool.key_of, 0
    for key, holders in pool.holders.items():
        if not holders:
            yield "KEY", f"key {key} is there without a holder"
        for block in holders:
            held += 1
            if key_of.get(block) != key:
                yield "KEY", f"block {block} holds key {key}, but has key {key_of.get(block)}"
    if held != len(key_of):
        yield "KEY", f"{held} blocks hold a key, {len(key_of)} have one"
        yield from _keyed(pool, key_of)


# --- requests ------------------------------------------------------------------------------------


def _requests(lives: Iterable[Live]) -> Iterator[Miscount]:
    for live in lives:
        if live.known != len(live.tokens):
            yield "CONTENT", f"{live.request.request_id} knows {live.known} tokens, it has {len(live.tokens)}"
        if not 0 <= live.published <= len(live.table):
            yield "KEY", f"{live.request.request_id} published {live.published} blocks of {len(live.table)}"


def _encoder(state: State) -> Iterator[Miscount]:
    free, size = state.encoder_free, state.config.encoder_cache_size
    cached = sum(live.item(index).length for live in state.live.values() for index in live.cached)
    if free + cached != size:
        yield "CAPS", f"{free} encoder slots are free and {cached} cached, there are {size}"
