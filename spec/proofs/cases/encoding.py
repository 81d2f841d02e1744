"""Cases: encoder items: which ones a step computes, their cache, and how prefix keys name them."""

from __future__ import annotations

from typing import Any

import z3

from spec.proofs.cases.allocating import NUMBERS
from spec.proofs.cases.case import Case, Goals
from spec.proofs.state import contracts
from spec.proofs.state.contracts import unchanged
from spec.proofs.state.world import World
from spec.proofs.symbols.loops import Invariant
from spec.proofs.symbols.value import Number, term

Term = Any


def _choose(w: World) -> Any:
    live = w.own
    if w.path.choose(w.path.truth("the first item is cached")):
        live.cached.add(0)
    tokens, budget = Number(w.path.integer("tokens")), Number(w.path.integer("item budget"))
    first, second = live.request.items
    start, w.step.encoder_budget = Number(w.path.integer("from")), budget
    w.items_from = start.term
    w.path.assume(*contracts.choose_items_needs(w, w.items_from, tokens.term, budget.term).values())
    w.path.assume(budget.term >= 0, term(first.end) <= term(second.offset))
    w.before = w.cells()
    return tokens, budget, w.modules.encoder.choose_items(w.state, live, start, tokens, budget)


def _chosen(w: World, answer: Any) -> Goals:
    tokens, budget, chosen = answer
    live, start = w.own, w.items_from
    end = start + term(chosen.tokens)
    lengths = z3.Sum([z3.IntVal(0), *(term(live.request.items[index].length) for index in chosen.items)])
    goals: Goals = {
        "CAPS: items fit the encoder budget": z3.And(
            lengths <= budget.term, term(chosen.budget) == budget.term - lengths
        ),
        "CAPS: items fit the encoder cache": lengths <= term(w.state.encoder_free),
        "BUDGET: never more tokens, never fewer than none": z3.And(
            term(chosen.tokens) <= tokens.term, term(chosen.tokens) >= 0
        ),
        **unchanged(w, w.before, Invariant([])),
    }
    goals["EMBED: nothing is chosen for no tokens"] = z3.Or(tokens.term >= 1, not chosen.items)
    whole = term(w.config.disable_chunked_mm_input)
    stopped = []
    for index, item in enumerate(live.request.items):
        offset, item_end = term(item.offset), term(item.end)
        overlaps = z3.And(end > start, offset < end, item_end > start)
        had = z3.BoolVal(index in live.cached or index in chosen.items)
        goals[f"EMBED: item {index} is cached or chosen if it is overlapped"] = z3.Implies(overlaps, had)
        began = z3.And(z3.BoolVal(index in chosen.items), offset >= start)
        goals[f"WHOLE: item {index} is not cut"] = z3.Implies(z3.And(whole, began), item_end <= end)
        goals[f"EMBED: item {index} is chosen only if it is overlapped"] = z3.Implies(
            z3.BoolVal(index in chosen.items),
            z3.And(offset < start + tokens.term, item_end > start, index not in live.cached),
        )
        too_long = z3.Or(
            term(item.length) > budget.term - lengths,
            term(item.length) > term(w.state.encoder_free) - lengths,
            z3.And(whole, offset >= start, start + tokens.term < item_end),
        )
        stopped.append(z3.And(z3.Not(had), end == z3.If(offset > start, offset, start), too_long))
    goals["EMBED: stops only before an item that cannot be computed"] = z3.Or(
        term(chosen.tokens) == tokens.term, *stopped
    )
    return goals


def _cache(w: World) -> Any:
    w.before = w.cells()
    w.modules.encoder.cache_item(w.state, w.own, 0)
    w.between = term(w.state.encoder_free), set(w.own.cached)
    if w.path.choose(w.path.truth("with the request")):
        w.modules.encoder.free_all(w.state, w.own)
        return True
    w.modules.encoder.free_consumed(w.state, w.own)
    return False


def _cached(w: World, with_request: bool) -> Goals:
    space, held = w.between
    item, before = w.own.request.items[0], w.before["encoder space"]
    gone = not w.own.cached
    consumed = term(item.end) <= term(w.own.computed)
    return {
        "CAPS: an item takes its space": z3.And(space == before - term(item.length), z3.BoolVal(held == {0})),
        "CAPS: and gives it back": term(w.state.encoder_free) == (before if gone else space),
        "EMBED: it leaves with its request, or when it is consumed": z3.BoolVal(gone)
        if with_request
        else (consumed if gone else z3.Not(consumed)),
        "CAPS: the plan says so": w.state.freed == ([("own", 0)] if gone else []),
    }


def _overlapping(w: World) -> Any:
    index = Number(w.path.integer("index"))
    w.before = w.cells()
    return index, w.modules.prefix._overlapping(w.state, w.own, index)


def _named(w: World, answer: Any) -> Goals:
    index, found = answer
    start, slot = index.term * w.block_size, w.path.integer("slot")
    items, named = w.own.request.items, {id(content): place for content, place in found}
    in_order = [id(item.content) for item in items if id(item.content) in named]
    goals: Goals = {"KEY: each is named once, in their order": [id(content) for content, _ in found] == in_order}
    for number, item in enumerate(items):
        first = z3.If(start >= term(item.offset), start, term(item.offset))
        if (place := named.get(id(item.content))) is None:
            goals[f"KEY: item {number} is named if it overlaps the block"] = z3.Not(_shared(w, item, start, slot))
        else:
            goals[f"KEY: item {number} is named only if it overlaps the block"] = _shared(w, item, start, first)
            goals[f"KEY: item {number} is named by its place"] = term(place) == term(item.offset) - start
    return goals


def _shared(w: World, item: Any, start: Term, slot: Term) -> Term:
    """Whether a slot is in an item and in the block that begins at `start`."""
    return z3.And(start <= slot, slot < start + w.block_size, term(item.offset) <= slot, slot < term(item.end))


CASES: tuple[Case, ...] = (
    Case("encoder.choose_items", _choose, _chosen, {**NUMBERS, "items": 2}, bounded="two encoder items"),
    Case("encoder.cache_item, free_item", _cache, _cached, {**NUMBERS, "items": 1}, bounded="one encoder item"),
    Case("prefix._overlapping", _overlapping, _named, {**NUMBERS, "items": 2}, bounded="two encoder items"),
)
