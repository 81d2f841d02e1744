"""What happens between two steps: the model answers, requests come and go."""

from __future__ import annotations

from typing import Any

import z3

from spec.proofs.cases.allocating import NUMBERS, WAITS, leading
from spec.proofs.cases.case import Case, Goals
from spec.proofs.state.contracts import release_table, release_table_stub, unchanged
from spec.proofs.state.invariants import length
from spec.proofs.state.numbers import Tally, numbers
from spec.proofs.state.world import World
from spec.proofs.symbols.keys import WORD
from spec.proofs.symbols.lists import Tokens
from spec.proofs.symbols.loops import Invariant, frozen
from spec.proofs.symbols.queues import keeps_order, moved, sequence
from spec.proofs.symbols.value import Number, Truth, term
from spec.vocabulary import Admission, Finish, FinishReason, Grant, ModelOutput, Refused, Request, Status

Term = Any

# --- the model's answer --------------------------------------------------------------------------


def ends_text(w: World, token: Term) -> Term:
    request = w.own.request
    return z3.And(token == term(request.eos_token_id), z3.Not(term(request.ignore_eos)))


def stops(w: World, token: Term) -> tuple[Term, Term]:
    """Whether a token ends the own request as a stop, and whether as a length (FIN-1)."""
    stop = z3.Or(ends_text(w, token), w.own.request.stop_token_ids.member[token])
    return stop, z3.And(z3.Not(stop), term(w.own.known) >= term(w.own.limit))


def _stop(w: World) -> Any:
    w.own.known = w.own.known + 1
    token = Number(w.path.integer("token"))
    w.before = w.cells()
    return token, w.modules.outcome.stop(w.state, w.own, token)


def _stopped(w: World, answer: Any) -> Goals:
    token, end = answer
    stop, capped = stops(w, token.term)
    expected = {None: z3.Not(z3.Or(stop, capped)), FinishReason.STOP: stop, FinishReason.LENGTH: capped}
    named = z3.And(stop, z3.Not(ends_text(w, token.term)))
    return {
        "FINISH: a stop token ends it as stop, a cap as length": expected[end and end.reason],
        "FINISH: it tells who ended": end is None or end.request_id == "own",
        "FINISH: and the stop token, but not an end of text": named
        if end is not None and end.stop_token is token
        else z3.And(z3.Not(named), end is None or end.stop_token is None),
        **unchanged(w, w.before, Invariant([])),
    }


def stop_stub(w: World, state: Any, live: Any, token: Any) -> Finish | None:
    w.path.require("FINISH: the last token is asked for (needed by stop)", z3.BoolVal(token is live.tokens.last))
    stop, capped = stops(w, term(token))
    for reason, holds in ((FinishReason.STOP, stop), (FinishReason.LENGTH, capped)):
        if w.path.choose(holds):
            w.said = end = Finish("own", reason)
            return end
    return None


def accept(w: World, end: Term) -> None:
    """Assumed of the model: a draft that it accepts is the token that comes there, so its slot holds the right KV."""
    table, due, size = w.own.table, w.due, w.block_size

    def fact(b: Term) -> Term:
        place = table.where[b]
        read = z3.And(table.count[b] >= 1, place * size + w.offset < end)
        return z3.Implies(read, due[b] == WORD(w.own.number, place))

    w.path.for_all("block", frozen(fact))


def _settle(samples: bool, drafts: bool) -> Any:
    """The step is done: computed tokens have advanced, tokens were sampled behind the known ones, or none."""

    def act(w: World) -> Any:
        live, size = w.own, w.block_size
        scheduled: Any = Tokens(w.path.integer("scheduled drafts"), live) if drafts else ()
        sampled: Any = Tokens(w.path.integer("sampled"), live) if samples else ()
        w.path.assume(*sampled_behind(live, scheduled, sampled))
        computed = term(live.computed)
        w.path.assume(term(live.published) * size <= computed - length(scheduled))
        if drafts:
            accept(w, computed - (length(scheduled) + 1 - length(sampled)))
        new = Tokens(w.path.integer("new drafts"), live)
        w.path.assume(new.size >= 0, new.size <= term(w.config.num_speculative_tokens))
        entry = Grant("own", Admission.RUNNING, 0, 1, (), scheduled)
        output = ModelOutput({"own": sampled} if samples else {}, {"own": new})  # type: ignore[dict-item]
        w.before, w.emitted, w.new_drafts, w.said = w.cells(), [], new.size, None
        w.before["own drafts size"] = length(live.drafts)
        return sampled, scheduled, w.modules.outcome.settle_one(w.state, live, entry, output, w.emitted)

    return act


def sampled_behind(live: Any, scheduled: Any, sampled: Any) -> list[Term]:
    """Assumed of the model: it samples where all known tokens are computed, one and at most one for each draft."""
    computed, known = term(live.computed), term(live.known)
    if not isinstance(sampled, Tokens):
        return [computed < known]
    some = [] if not isinstance(scheduled, Tokens) else [scheduled.size >= 1, scheduled.size <= length(live.drafts)]
    most = length(scheduled) + 1
    return [computed == known + length(scheduled), sampled.size >= 1, sampled.size <= most, *some]


def _settled(w: World, answer: Any) -> Goals:
    sampled, scheduled, end = answer
    before, live = w.before, w.own
    appended = term(live.known) - before["own known"]
    told = length(w.emitted[0][1]) if w.emitted else z3.IntVal(0)
    rejected = length(scheduled) + 1 - length(sampled) if isinstance(scheduled, Tokens) else z3.IntVal(0)
    goals: Goals = {
        "OUTPUT: its drafts are the new ones, if there is a drafter": length(live.drafts)
        == z3.If(term(w.config.num_speculative_tokens) > 0, w.new_drafts, before["own drafts size"]),
        "FINISH: it ends as its last token says": end is w.said,
        "FINISH: it ends if and only if it holds nothing": (live.status is Status.FINISHED) == (end is not None),
        "OUTPUT: what is appended is delivered": z3.And(
            appended == told, len(w.emitted) == isinstance(sampled, Tokens)
        ),
        "OUTPUT: from the first on": not w.emitted or (w.emitted[0][0] == "own" and leading(w.emitted[0][1])),
        "OUTPUT: all of it, up to the end": told == length(sampled) if end is None else told <= length(sampled),
        "STATE: its id ends once": w.state.finished == ([] if end is None else ["own"])
        and ("own" in dict.keys(w.state.live)) == (end is None),
        **{
            f"ATOMIC: {cell} stays": w.cells()[cell] == old for cell, old in before.items() if cell.startswith("other ")
        },
    }
    if isinstance(scheduled, Tokens):
        goals["CONTIGUOUS: rejected drafts are computed again"] = (
            term(live.computed) == before["own computed"] - rejected
        )
    if end is None:
        goals["LAST: something known is left to compute"] = term(live.computed) < term(live.known)
    if isinstance(sampled, Tokens) and end is None:
        goals["PROGRESS: more is known"] = term(live.known) > before["own known"]
    return {**w.holds_now(), **goals}


# --- requests come and go ------------------------------------------------------------------------


def _release(w: World) -> Any:
    w.before, w.promise = w.cells(), release_table(w, w.own)
    w.modules.lifecycle.release_table(w.state, w.own)
    return None


def _released(w: World, _: Any) -> Goals:
    frame = {"own published": lambda: None, "own table length": lambda: None}
    before = {cell: old for cell, old in w.before.items() if not cell.startswith("own table")}
    return {
        **w.promise.goals(),
        **unchanged(w, before, Invariant(w.promise.changes, frame)),
    }


def _add(w: World) -> Any:
    prompt = Tokens(w.path.integer("new prompt"))
    longest = term(w.config.max_model_len)
    most = Number(w.path.integer("new max_tokens"))
    w.path.assume(prompt.size >= 1, prompt.size <= longest, most.term >= 1)
    grammar: Any = Truth(w.path.truth("needs grammar"))
    request = Request("new", prompt, most, needs_grammar=grammar)  # type: ignore[arg-type]
    w.before, waiting = w.cells(), w.state.waiting
    try:
        w.modules.lifecycle.add(w.state, request)
    except Refused as refused:
        return request, waiting, str(refused)
    return request, waiting, None


def fits_alone(w: World, request: Any) -> Term:
    """Whether a request fits the empty pool at its longest, said in tokens (PRG-1)."""
    prompt, longest = length(request.prompt_token_ids), term(w.config.max_model_len)
    limit = prompt + term(request.max_tokens)
    limit = z3.If(limit <= longest, limit, longest)
    last = z3.If(limit - 1 >= prompt, limit - 1, prompt)
    speculates = z3.Or(term(w.config.use_eagle), last > prompt)
    slots = last + z3.If(speculates, term(w.config.num_speculative_tokens), 0)
    return z3.If(slots <= longest, slots, longest) + w.lookahead <= (w.num_blocks - 1) * w.block_size


def _added(w: World, answer: Any) -> Goals:
    request, waiting, refused = answer
    fits, live = fits_alone(w, request), w.id_is_live
    if refused is not None:
        reason = live if refused.startswith("id") else z3.And(z3.Not(live), z3.Not(fits))
        return {
            "PROGRESS: refused for a reason that is true": reason,
            "STATE: it is not live": "new" not in dict.keys(w.state.live),
            **unchanged(w, w.before, Invariant([])),
        }
    new = w.state.live.get("new")
    prompt, longest = length(request.prompt_token_ids), term(w.config.max_model_len)
    limit = prompt + term(request.max_tokens)
    frame = Invariant([], {"waiting": lambda: None})
    return {
        "PROGRESS: accepted if and only if it fits alone": z3.And(z3.Not(live), fits),
        "STATE: it waits at the back": waiting.joined == [("back", new)] and new.request is request,
        "STATE: its grammar is waited for": term(request.needs_grammar)
        if new.status is Status.WAITING_FOR_GRAMMAR
        else z3.And(z3.Not(term(request.needs_grammar)), new.status is Status.WAITING),
        "COUNT: it holds nothing": (new.table, new.published, new.computed, new.cached) == ([], 0, 0, set()),
        "STATE: nothing of it is known but its prompt": (new.keys, new.drafts, new.grammar_ready) == ([], (), False),
        "LENGTH: it knows its prompt, up to its limit": z3.And(
            term(new.known) == prompt, term(new.limit) == z3.If(limit <= longest, limit, longest)
        ),
        "STATE: one waits more": waiting.size == w.before["waiting"] + 1,
        **keeps_order(w),
        "ORDER: it comes behind everybody": z3.And(
            *(z3.Implies(there, place < sequence(w)[new][0]) for place, there in w.sequence.values())
        ),
        **unchanged(w, w.before, frame),
    }


def _abort(w: World) -> Any:
    if w.own.status is Status.WAITING:
        for status in (Status.PREEMPTED, Status.WAITING_FOR_GRAMMAR):
            if w.own.status is Status.WAITING and w.path.choose(w.path.truth(status.value)):
                w.own.status = status
    w.name = "own" if w.path.choose(w.path.truth("the id is live")) else "nobody"
    w.before = w.cells()
    w.modules.lifecycle.abort(w.state, w.name)
    return w.name


def _aborted(w: World, name: str) -> Goals:
    if name == "nobody":
        return {"ATOMIC: nothing ends": w.state.finished == [], **unchanged(w, w.before, Invariant([]))}
    live = w.own
    gone = live not in w.state.running.present and live not in w.state.waiting.present
    now, before = w.cells(), w.before
    return {
        **w.holds_now(),
        "STATE: it is gone": gone and "own" not in dict.keys(w.state.live) and live.status is Status.FINISHED,
        "STATE: one less in the queues": now["running"] + now["waiting"] == before["running"] + before["waiting"] - 1,
        "FINISH: its id ends once": w.state.finished == ["own"],
        "COUNT: it holds nothing": length(live.table) == 0,
        **moved(w, lambda who, place: z3.If(place > w.sequence[live][0], -1, 0)),
        **{f"ATOMIC: {cell} stays": now[cell] == old for cell, old in before.items() if cell.startswith("other ")},
    }


def _ready(w: World) -> Any:
    w.before = w.cells()
    w.modules.lifecycle.grammar_ready(w.state, "own")
    w.modules.lifecycle.grammar_ready(w.state, "nobody")
    return None


def _noticed(w: World, _: Any) -> Goals:
    frame = Invariant([], {"own grammar ready": lambda: None})
    return {"STATE: its grammar is ready": w.own.grammar_ready is True, **unchanged(w, w.before, frame)}


def _reset(w: World) -> Any:
    w.before = w.cells()
    return w.modules.lifecycle.reset_prefix_cache(w.state)


def _was_reset(w: World, done: bool) -> Goals:
    pool, all_free = w.state.pool, w.before["free size"] == w.num_blocks - 1
    has = pool.key_of.has[w.any["block"]]
    return {
        "ATOMIC: forgets if and only if no block is held": all_free if done else z3.Not(all_free),
        "KEY: nothing is hittable behind it": z3.Not(has) if done else z3.BoolVal(True),
        **unchanged(w, w.before, Invariant([pool.key_of, pool.holders] if done else [])),
    }


def _close(w: World) -> Any:
    """Any number of grants, one of own among them, or none."""
    place, tokens = w.path.integer("place of the grant of own"), Number(w.path.integer("granted tokens"))
    some: Any = Number(w.path.integer("tokens of another"))
    w.step.grants = granted = Tally(w.path.integer("grants"), w.path.integer("tokens of all grants"))
    w.path.assume(granted.size >= 0, place >= -1, place < granted.size)
    granted.own = place, Grant("own", Admission.RUNNING, w.own.computed, tokens, ())  # type: ignore[arg-type]
    granted.other = Grant("other", Admission.RUNNING, w.other.computed, some, ())
    w.state.finished, w.state.freed = ["b", "a"], [("a", 1), ("a", 0)]
    w.step.preempted, w.begun = ["c"], numbers(w)
    w.before = w.cells()
    plan = w.modules.scheduler.close_step(w.state, w.step)
    w.step.skipped.clear()  # the step is over
    return z3.If(place >= 0, tokens.term, 0), plan


def _closed(w: World, answer: Any) -> Goals:
    tokens, plan = answer
    changes = ("own computed", "other computed", "waiting", "set aside")
    frame = Invariant([], dict.fromkeys(changes, lambda: None))
    return {
        "CONTIGUOUS: computed tokens advance by what was granted": term(w.own.computed)
        == w.before["own computed"] + tokens,
        **keeps_order(w),
        "FINISH: ids are told once": plan.finished == ("a", "b") and w.state.finished == [],
        "CAPS: freed items are told once": plan.freed_items == (("a", 0), ("a", 1)) and w.state.freed == [],
        "BUDGET: the plan holds the grants": plan.grants is w.step.grants,
        "PREEMPTED: the plan says who": plan.preempted == ("c",),
        "STATE: nobody is lost": w.state.waiting.size == w.begun.waiting + w.begun.aside,
        **unchanged(w, w.before, frame),
    }


RELEASE = {"lifecycle.release_table": release_table_stub}


def _settle_items(w: World) -> Any:
    w.own.cached.add(0)
    return _settle(True, False)(w)


def _items_consumed(w: World, answer: Any) -> Goals:
    item = w.own.request.items[0]
    consumed = z3.Or(term(item.end) <= term(w.own.computed), answer[2] is not None)
    gone = not w.own.cached
    space = w.before["encoder space"] + (term(item.length) if gone else 0)
    return {
        "EMBED: an item leaves when it is consumed or its request ends": consumed if gone else z3.Not(consumed),
        "CAPS: and gives its space back": term(w.state.encoder_free) == space,
    }


NOT_COMMON = {"scheduler.common_prefix_blocks": lambda w, state: 0}

CASES: tuple[Case, ...] = (
    Case("outcome.stop", _stop, _stopped, NUMBERS),
    *(
        Case(
            f"outcome.settle_one, {'sampled' if samples else 'nothing sampled'}{', drafts' if drafts else ''}",
            _settle(samples, drafts),
            _settled,
            contracts={"outcome.stop": stop_stub, **RELEASE},
        )
        for samples, drafts in ((False, False), (True, False), (True, True))
    ),
    Case(
        "outcome.settle_one, items",
        _settle_items,
        _items_consumed,
        {"items": 1},
        bounded="one encoder item",
        contracts={"outcome.stop": stop_stub, **RELEASE},
    ),
    Case("lifecycle.add", _add, _added, NUMBERS),
    Case("lifecycle.release_table", _release, _released),
    Case("lifecycle.abort, running", _abort, _aborted, contracts=RELEASE),
    Case("lifecycle.abort, waiting", _abort, _aborted, WAITS, contracts=RELEASE),
    Case("lifecycle.grammar_ready", _ready, _noticed, {**WAITS, **NUMBERS}),
    Case("lifecycle.reset_prefix_cache", _reset, _was_reset),
    Case(
        "scheduler.close_step",
        _close,
        _closed,
        NUMBERS,
        contracts=NOT_COMMON,
    ),
)
