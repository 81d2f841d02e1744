"""Prefix keys: what they stand for, which blocks a request hits, when a block becomes hittable.

A key stands for everything that decides the KV of a complete block: its tokens, its adapter, the
encoder items that overlap it and where, and the key of the block before it (HASH-1, HASH-3).  The request id is
never part of it.
"""

from __future__ import annotations

from spec.formulas import complete_blocks
from spec.pool import Key, oldest, publish
from spec.state import Live, State

ROOT: Key = 0


def longest_hit(state: State, live: Live) -> list[int]:
    """The blocks that a waiting request can adopt: its longest published prefix (CACHE-1).

    Never the whole sequence: at least one token is computed, because its logits are needed
    (CACHE-3).  A drafter that needs the hidden states of the last block gives one block back.
    """
    if not state.config.enable_prefix_caching:
        return []
    if not live.keys:
        _work_out_keys(state, live)
    if live.request.prompt_logprobs:
        state.log.append(("hit", "reads no cache"))
        return []
    hits = []
    for key in live.keys[: _keys_to_look_up(state, live)]:
        block = oldest(state.pool, key)
        if block is None:
            break
        hits.append(block)
    if state.config.use_eagle and hits:
        hits.pop()
        state.log.append(("hit", "eagle drops one"))
    state.log.append(("hit", "some" if hits else "none"))
    return hits


def publish_complete(state: State, live: Live, computed: int, tokens: int) -> None:
    """Makes the blocks hittable that the scheduled tokens complete (CACHE-5, CACHE-7).

    This comes before the computation: a later reader runs in the same forward pass or a later one.
    """
    complete = complete_blocks(computed, tokens, len(live.drafts), state.config.block_size)
    if live.drafts:
        _log_odd_counts(state, live, complete, computed + tokens)
    for index in range(live.published, complete):
        key = _key(state, live, index)
        state.log.append(("publish", "behind an older duplicate" if key in state.pool.holders else "ok"))
        publish(state.pool, live.table[index], key)
        live.published = index + 1


def _log_odd_counts(state: State, live: Live, complete: int, tokens: int) -> None:
    """Where a release that subtracts drafts without care goes wrong."""
    if complete < live.published:
        state.log.append(("publish", "fewer complete than published"))
    if tokens < len(live.drafts):
        state.log.append(("publish", "more drafts than tokens"))


def _keys_to_look_up(state: State, live: Live) -> int:
    keys = len(live.keys)
    if keys * state.config.block_size == live.known:
        state.log.append(("hit", "last token rule"))
        return keys - 1
    return keys


def _work_out_keys(state: State, live: Live) -> None:
    """All complete blocks known at the first lookup; later ones come with publication (HASH-4)."""
    for index in range(live.known // state.config.block_size):
        live.keys.append(_intern(state, live, index, _overlapping(state, live, index)))


def _key(state: State, live: Live, index: int) -> Key:
    if index == len(live.keys):
        quirk = "generated_block_names_last_item" in state.profile.quirks
        items = _last_item_only(state, live, index) if quirk else _overlapping(state, live, index)
        live.keys.append(_intern(state, live, index, items))
    return live.keys[index]


def _intern(state: State, live: Live, index: int, items: tuple[tuple[int, int], ...]) -> Key:
    size = state.config.block_size
    parent = live.keys[index - 1] if index else ROOT
    tokens = tuple(live.tokens[index * size : (index + 1) * size])
    meaning = (parent, live.request.lora_id, items, tokens)
    return state.key_table.setdefault(meaning, len(state.key_table) + 1)


def _overlapping(state: State, live: Live, index: int) -> tuple[tuple[int, int], ...]:
    """Content and place, relative to the block, of every item that overlaps it."""
    start = index * state.config.block_size
    end = start + state.config.block_size
    items = live.request.items
    return tuple((item.content, item.offset - start) for item in items if item.offset < end and item.end > start)


def _last_item_only(state: State, live: Live, index: int) -> tuple[tuple[int, int], ...]:
    start = index * state.config.block_size
    end = start + state.config.block_size
    items = live.request.items[-1:]
    return tuple((item.content, item.offset - start) for item in items if item.offset < end and item.end >= start)
