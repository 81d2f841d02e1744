"""The formulas, each against what it means, said without division and without the other formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from spec.proofs.cases.allocating import NUMBERS
from spec.proofs.cases.case import Case, Goals
from spec.proofs.state.world import World
from spec.proofs.symbols.value import Number, term

Term = Any


def formula(name: str, arguments: tuple[str, ...], goals: Callable[..., Goals]) -> Case:
    """A case about a formula of whole numbers; `block_size` is at least 1, the rest is anything."""

    def act(w: World) -> Any:
        given = [w.config.block_size if each == "block_size" else Number(w.path.integer(each)) for each in arguments]
        return given, getattr(w.modules.formulas, name)(*given)

    def told(w: World, answer: Any) -> Goals:
        given, found = answer
        return goals(*(term(each) for each in given), term(found))

    return Case(f"formulas.{name}", act, told, NUMBERS)


def _ceil_div(a: Term, b: Term, n: Term) -> Goals:
    return {"COVER: enough": n * b >= a, "COVER: and not one too many": (n - 1) * b < a}


def _least(a: Term, b: Term, n: Term) -> Goals:
    return {"LENGTH: the lesser": z3.And(n <= a, n <= b, z3.Or(n == a, n == b))}


def _most(a: Term, b: Term, n: Term) -> Goals:
    return {"LENGTH: the greater": z3.And(n >= a, n >= b, z3.Or(n == a, n == b))}


def _below(tokens: Term, threshold: Term, n: Term) -> Goals:
    return {
        "BUDGET: at most the threshold, if there is one": z3.And(
            n <= tokens, z3.Implies(threshold > 0, n <= threshold)
        ),
        "BUDGET: and no less than that": z3.Or(n == tokens, z3.And(threshold > 0, n == threshold)),
    }


def _drafts(tokens: Term, computed: Term, known: Term, n: Term) -> Goals:
    end = tokens + computed
    return {"LAST: positions behind the known ones": z3.If(end > known, known + n == end, n == 0)}


def _needed(computed: Term, tokens: Term, lookahead: Term, held: Term, size: Term, n: Term) -> Goals:
    wanted = computed + tokens + lookahead
    return {
        "COVER: what is held and missing covers the tokens": (held + n) * size >= wanted,
        "COVER: and is not more": (held + n - 1) * size < wanted,
    }


def _taken(needed: Term, held: Term, longest: Term, size: Term, n: Term) -> Goals:
    full = held * size >= longest
    return {
        "LENGTH: never negative, never more than is missing": z3.And(n >= 0, z3.Or(n == 0, n <= needed)),
        "LENGTH: a full table takes nothing": z3.Implies(full, n == 0),
        "LENGTH: stops at the block that ends the model": z3.Or(n == 0, (held + n - 1) * size < longest),
        "COVER: takes all that fits": z3.Or(n >= needed, (held + n) * size >= longest),
    }


def _complete(computed: Term, tokens: Term, drafts: Term, size: Term, n: Term) -> Goals:
    certain = computed + tokens - drafts
    return {
        "KEY: they are full of what is certain": z3.Or(n == 0, n * size <= certain),
        "KEY: the next one is not": (n + 1) * size > certain,
        "KEY: never negative": n >= 0,
    }


def _footprint(w: World) -> Any:
    return w.own.request, w.modules.formulas.longest_footprint(w.own.request, w.config)


def _fits(w: World, answer: Any) -> Goals:
    from spec.proofs.cases.answering import fits_alone

    request, blocks = answer
    return {
        "PROGRESS: fits alone if and only if its tokens do": (term(blocks) <= w.num_blocks - 1)
        == fits_alone(w, request)
    }


CASES: tuple[Case, ...] = (
    formula("ceil_div", ("a", "block_size"), _ceil_div),
    formula("least", ("a", "b"), _least),
    formula("most", ("a", "b"), _most),
    formula(
        "running_demand",
        ("known", "drafts", "computed"),
        lambda k, d, c, n: {"BUDGET: all that is known and drafted": c + n == k + d},
    ),
    formula("admission_demand", ("known", "computed"), lambda k, c, n: {"BUDGET: all that is known": c + n == k}),
    formula("below_threshold", ("tokens", "threshold"), _below),
    formula("scheduled_drafts", ("tokens", "computed", "known"), _drafts),
    formula(
        "rejected_drafts",
        ("scheduled", "generated"),
        lambda s, g, n: {"CONTIGUOUS: each step yields one token more": g + n == s + 1},
    ),
    formula("blocks_needed", ("computed", "tokens", "lookahead", "held", "block_size"), _needed),
    formula(
        "available", ("free", "evictable"), lambda f, e, n: {"POOL: free hits cannot be taken as well": n + e == f}
    ),
    formula("blocks_taken", ("needed", "held", "max_model_len", "block_size"), _taken),
    formula("complete_blocks", ("computed", "tokens", "drafts", "block_size"), _complete),
    Case("formulas.longest_footprint", _footprint, _fits, NUMBERS),
)
