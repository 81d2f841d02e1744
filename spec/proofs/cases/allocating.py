"""Blocks and tokens for one request: allocation, publication, lookup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.cases.case import Case, Goals
from spec.proofs.state import contracts, invariants
from spec.proofs.state.contracts import unchanged
from spec.proofs.state.invariants import length
from spec.proofs.state.world import World
from spec.proofs.symbols.lists import Blocks, Tokens
from spec.proofs.symbols.loops import Invariant
from spec.proofs.symbols.value import Number, term
from spec.vocabulary import Admission, Status

Term = Any
Parts = dict[str, Callable[..., Any]]


def attempt_of(w: World, computed: Any) -> Any:
    """An attempt that the guard has let pass, but for its blocks."""
    return w.modules.allocation.Attempt(w.state, w.step, w.own, computed, Number(w.path.integer("tokens")))


# --- tables --------------------------------------------------------------------------------------


def _extend(admission: bool) -> Any:
    def act(w: World) -> Any:
        a = attempt_of(w, w.own.computed)
        if admission:
            hits = Blocks.fresh("hits")
            w.path.assume(hits.size >= 1)  # with none it is what a running request with an empty table does
            contracts.longest_hit(w, hits).suppose()
            adopt(w, a, hits)
        a.needed = Number(w.path.integer("needed"))
        w.path.assume(*contracts.extend_table_needs(w, a).values())
        w.before, w.promise, w.held = w.cells(), contracts.extend_table(w, a), contracts.held_with_hits(w, a)
        return w.modules.allocation._extend_table(a)

    return act


def adopt(w: World, a: Any, hits: Any) -> None:
    """Own comes from the waiting queue with hits, if any; its computed tokens were set by the admission."""
    w.path.assume(length(w.own.table) == 0, term(w.own.published) == 0)
    a.hits, a.evictable = hits, w.modules.pool.evictable(w.state.pool, hits)


def _extended(w: World, blocks: Any) -> Goals:
    return {**_kept_promise(w, blocks), **contracts.taken(w, w.held, blocks).goals()}


def _kept_promise(w: World, _: Any) -> Goals:
    return {**w.promise.goals(), **unchanged(w, w.before, w.promise)}


def _publish_complete(w: World) -> Any:
    tokens = Number(w.path.integer("tokens"))
    w.path.assume(tokens.term >= 1)
    w.path.assume(*contracts.publish_needs(w, term(w.own.computed), tokens.term).values())
    w.before, w.promise = w.cells(), contracts.publish_complete(w, term(w.own.computed), tokens.term)
    w.modules.prefix.publish_complete(w.state, w.own, w.own.computed, tokens)
    return None


def _drafts(w: World) -> Any:
    a = attempt_of(w, w.own.computed)
    w.path.assume(*contracts.drafts_needs(a).values())
    w.before = w.cells()
    return a, w.own.drafts.size, w.modules.allocation._drafts_of(a)


def leading(part: Tokens) -> Term:
    """Whether a part of tokens begins where the whole begins."""
    assert part.part is not None
    return part.part[0] == 0


def _kept(w: World, answer: Any) -> Goals:
    a, before, scheduled = answer
    inside = contracts.drafts_inside(a)
    return {
        "LAST: the drafts inside the grant are scheduled": length(scheduled) == z3.If(inside > 0, inside, 0),
        "LAST: from the first on": leading(scheduled) if isinstance(scheduled, Tokens) else length(scheduled) == 0,
        "LAST: these are kept, or all if none is": length(w.own.drafts) == z3.If(inside > 0, inside, before),
        **unchanged(w, w.before, Invariant([w.own.drafts])),
    }


# --- the grant -----------------------------------------------------------------------------------


def grantable(w: World, a: Any) -> None:
    """What the guard and the cuts of a running request's demand have seen to."""
    tokens, computed, known = a.tokens.term, term(a.computed), term(w.own.known)
    w.path.assume(
        tokens >= 1,
        tokens <= term(w.step.budget),
        computed + tokens <= term(w.config.max_model_len),
        computed < known,
        computed + tokens <= known + length(w.own.drafts),
    )


def _grant(w: World) -> Any:
    a = attempt_of(w, w.own.computed)
    grantable(w, a)
    a.needed, a.external = Number(w.path.integer("needed")), Number(w.path.integer("external"))
    w.path.assume(*contracts.extend_table_needs(w, a).values())
    return granted(w, a, Admission.RUNNING)


def granted(w: World, a: Any, admission: Admission) -> Any:
    """Grants, then lets the step in flight write what was granted."""
    w.before, w.has_before, w.admission = w.cells(), w.state.pool.key_of.has, admission
    w.modules.allocation.grant(a, admission)
    written(w, a, term(a.computed))
    return a


def written(w: World, a: Any, start: Term) -> None:
    w.own.end = term(a.computed) + term(a.tokens)
    w.first_written = start
    w.write(w.own, start, w.own.end)


def plan_entry(w: World, a: Any) -> Goals:
    """The plan says what was done, and it was charged."""
    entry, b, size = w.step.grants[-1], w.any["block"], w.block_size
    table, end = w.own.table, w.own.end
    position = table.where[b] * size + w.offset
    written = z3.And(table.count[b] >= 1, w.first_written <= position, position < end)
    longest, demand = term(w.config.max_model_len), end + w.lookahead
    return {
        "BUDGET: what is left and what was granted is the budget": w.granted
        + z3.Sum([term(each.tokens) for each in w.step.grants])
        + term(w.step.budget)
        == term(w.config.max_num_batched_tokens),
        "BUDGET: every entry is at least 1": term(entry.tokens) >= 1,
        "BUDGET: the plan names the tokens": z3.And(
            term(entry.tokens) == term(a.tokens), term(entry.start) == term(a.computed)
        ),
        "STATE: it names who, and how it came": entry.request_id == "own" and entry.admission is w.admission,
        "CONTENT: it names the external tokens": term(entry.external) == term(a.external),
        **named_blocks(w, entry.blocks),
        "LENGTH: no position beyond the model": end <= longest,
        "COVER: every scheduled position has a slot": end <= table.size * size,
        "COVER: and the lookahead behind it": z3.Or(demand <= table.size * size, longest <= table.size * size),
        "LAST: drafts are what stands behind the known tokens": length(entry.drafts)
        == z3.If(end > term(w.own.known), end - term(w.own.known), 0),
        "KEY: drafts complete no block": z3.Or(
            term(w.own.published) * size <= end - length(entry.drafts),
            term(w.own.published) == w.before["own published"],
        ),
        "KEY: without caching none is published": z3.Or(
            term(w.config.enable_prefix_caching), term(w.own.published) == w.before["own published"]
        ),
        "KEY: every complete block is published": z3.Implies(
            term(w.config.enable_prefix_caching),
            (term(w.own.published) + 1) * size > end - w.before["own drafts size"],
        ),
        "WRITE: what is written is held by nobody else": z3.Implies(
            written,
            z3.And(invariants.refs(w, b) == 1, invariants.occurrences(w.other.table, b) == 0, w.elsewhere[b] == 0),
        ),
        "WRITE: nobody could hit it before": z3.Implies(
            z3.And(written, w.before["refs values"][b] >= 1), z3.Not(w.has_before[b])
        ),
    }


def named_blocks(w: World, blocks: Any) -> Goals:
    """The plan names the whole table of an admission, and what a running request took (OUT-2, RUN-8)."""
    table, place = w.own.table, w.any["place"]
    before = w.before["own table size"] if w.admission is Admission.RUNNING else z3.IntVal(0)
    inside = z3.And(place >= 0, place < length(blocks))
    return {
        "CONTENT: the plan names the blocks that are new to it": table.size == before + length(blocks),
        "CONTENT: in their places": z3.Implies(inside, blocks.at[place] == table.at[before + place]),
    }


def _granted(w: World, a: Any) -> Goals:
    return {**w.holds_now(), **plan_entry(w, a), **frame_of_other(w)}


def frame_of_other(w: World) -> Goals:
    now = w.cells()
    return {f"ATOMIC: {name} stays": now[name] == old for name, old in w.before.items() if name.startswith("other ")}


def _longest_hit(w: World) -> Any:
    w.before = w.cells()
    return w.modules.prefix.longest_hit(w.state, w.own)


def _hits(w: World, hits: Any) -> Goals:
    return {
        **contracts.longest_hit(w, hits).goals(),
        **contracts.longest_hit_keys(w).goals(),
        "KEY: no more hits than keys": length(hits) <= w.own.keys.size,
        "KEY: the hits are all there are": all_hits(w, hits),
        "KEY: all complete blocks have keys": keys_worked_out(w),
        **unchanged(w, w.before, Invariant([w.own.keys])),
    }


def all_hits(w: World, hits: Any) -> Term:
    """The walk stopped at the end of the keys or at one that nobody has; a drafter with KV gave one block back."""
    live, pool, number = w.own, w.state.pool, length(hits)
    caching = term(w.config.enable_prefix_caching)
    if isinstance(hits, list):
        return z3.Or(z3.Not(caching), term(live.request.prompt_logprobs))
    keys = live.keys.size
    some = z3.If(keys * w.block_size == term(live.known), keys - 1, keys)
    stops: Callable[[Term], Term] = lambda h: z3.Or(h == some, z3.Not(pool.holders.present[live.keys.at[h]]))  # noqa: E731
    with_eagle = z3.Or(stops(number + 1), z3.And(number == 0, stops(number)))
    reads = z3.And(caching, z3.Not(term(live.request.prompt_logprobs)))
    return z3.And(reads, z3.If(term(w.config.use_eagle), with_eagle, stops(number)))


def keys_worked_out(w: World) -> Term:
    first = z3.And(term(w.config.enable_prefix_caching), w.before["own keys size"] == 0)
    return z3.Implies(first, (w.own.keys.size + 1) * w.block_size > term(w.own.known))


NUMBERS = {"blocks": False}
"""A setting for what looks at no block: the facts about blocks are left away."""
WAITS = {"status": Status.WAITING}
ITEMS: Parts = {"prefix._overlapping": contracts.items_stub}

GRANT_PARTS: Parts = {
    "allocation._extend_table": contracts.extend_table_stub,
    "prefix.publish_complete": contracts.publish_stub,
    "allocation._drafts_of": contracts.drafts_stub,
}


def _grant_items(w: World) -> Any:
    """With an item that this step computes."""
    a = attempt_of(w, w.own.computed)
    grantable(w, a)
    a.needed = Number(w.path.integer("needed"))
    a.chosen = w.modules.encoder.Chosen((0,), a.tokens, Number(w.path.integer("encoder budget behind")))
    w.path.assume(term(a.chosen.budget) >= 0, term(w.own.request.items[0].length) <= term(w.state.encoder_free))
    w.path.assume(*contracts.extend_table_needs(w, a).values())
    w.before = w.cells()
    w.modules.allocation.grant(a, Admission.RUNNING)
    return a


def _items_granted(w: World, a: Any) -> Goals:
    item = w.own.request.items[0]
    return {
        "BUDGET: the encoder budget is charged": term(w.step.encoder_budget) == term(a.chosen.budget),
        "CAPS: neither budget nor cache are overdrawn": z3.And(
            term(w.step.encoder_budget) >= 0, term(w.state.encoder_free) >= 0
        ),
        "CAPS: the item is cached": w.own.cached == {0},
        "CAPS: and takes its space": term(w.state.encoder_free) == w.before["encoder space"] - term(item.length),
        "EMBED: the plan names it": w.step.grants[-1].items == (0,),
    }


CASES: tuple[Case, ...] = (
    Case("allocation._extend_table, running", _extend(False), _extended),
    Case("allocation._extend_table, admission", _extend(True), _extended),
    Case("prefix.publish_complete", _publish_complete, _kept_promise, {"adapter": True}, contracts=ITEMS),
    Case("prefix.longest_hit", _longest_hit, _hits, {**WAITS, "adapter": True}, contracts=ITEMS),
    Case("allocation._drafts_of", _drafts, _kept),
    Case(
        "allocation.grant",
        _grant,
        _granted,
        contracts=GRANT_PARTS,
    ),
    Case(
        "allocation.grant, items",
        _grant_items,
        _items_granted,
        {"items": 1},
        bounded="one encoder item",
        contracts=GRANT_PARTS,
    ),
)
