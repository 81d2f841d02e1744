"""Encoder items: which ones a step computes, and the cache that holds their embeddings.

An item is computed whole, in the step that first reaches it, and stays cached until the decoder
has consumed it.  Where budget or cache do not suffice the decoder stops just before the item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spec.state import Live, State
from spec.vocabulary import EncoderItem


class Chosen(NamedTuple):
    """The items that a step computes for one request, and what remains of tokens and budget."""

    items: tuple[int, ...]
    tokens: int
    budget: int


class View(NamedTuple):
    """One item, as the walk over a request's items meets it."""

    state: State
    item: EncoderItem
    computed: int
    tokens: int
    budget: int
    chosen_length: int


def _would_be_cut(view: View) -> bool:
    config, quirks = view.state.config, view.state.profile.quirks
    before = view.computed < view.item.offset
    at_start = view.computed == view.item.offset and "splits_item_at_start" not in quirks
    return config.disable_chunked_mm_input and (before or at_start) and view.computed + view.tokens < view.item.end


def _exceeds_cache(view: View) -> bool:
    counted = 0 if "encoder_overcommit" in view.state.profile.quirks else view.chosen_length
    return view.item.length > view.state.encoder_free - counted


STOPS: tuple[tuple[str, Callable[[View], bool]], ...] = (
    ("item would be cut", _would_be_cut),
    ("encoder cache", _exceeds_cache),
    ("encoder budget", lambda view: view.item.length > view.budget),
)
"""Why the decoder stops before an item, in the order in which the reasons are tried (ENC-2, ENC-3)."""


def choose_items(state: State, live: Live, computed: int, tokens: int, budget: int) -> Chosen:
    """Items overlapping `computed .. computed + tokens`, and the tokens that can go on (ENC-2)."""
    chosen: list[int] = []
    chosen_length = 0
    for index, item in enumerate(live.request.items):
        if tokens == 0 or item.offset >= computed + tokens:
            break
        if item.end <= computed or index in live.cached:
            continue
        view = View(state, item, computed, tokens, budget, chosen_length)
        reason = next((name for name, stops in STOPS if stops(view)), None)
        if reason is not None:
            state.log.append(("choose_items", reason))
            tokens = max(item.offset - computed, 0)
            break
        chosen.append(index)
        chosen_length += item.length
        budget -= item.length
        state.log.append(("choose_items", "ok"))
    return Chosen(tuple(chosen), tokens, budget)


def cache_item(state: State, live: Live, index: int) -> None:
    live.cached.add(index)
    state.encoder_free -= live.item(index).length


def free_item(state: State, live: Live, index: int) -> None:
    live.cached.remove(index)
    state.encoder_free += live.item(index).length
    state.freed.append((live.request.request_id, index))


def free_consumed(state: State, live: Live) -> None:
    """Frees the items that lie wholly before the first token still to compute (ENC-4)."""
    for index in sorted(live.cached):
        if live.item(index).end <= live.computed:
            free_item(state, live, index)
            state.log.append(("free item", "consumed"))


def free_all(state: State, live: Live) -> None:
    for index in sorted(live.cached):
        free_item(state, live, index)
