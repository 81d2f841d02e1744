"""Counterexamples that must be found: a run in which one is not found fails.

Each breaks something that the proofs rest on (a rule, a premise, a policy) and names the obligation that must then be
refuted.  Those that can be replayed are turned into a trace by `traces`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from spec.proofs import policing, progress, sources
from spec.proofs.admitting import CASES as ADMITTING
from spec.proofs.admitting import demand_stub
from spec.proofs.allocating import CASES as ALLOCATING
from spec.proofs.answering import fits_alone
from spec.proofs.cases import Case, prove
from spec.proofs.invariants import length
from spec.proofs.proving import Failure
from spec.proofs.value import term
from spec.proofs.world import World


@dataclass(frozen=True)
class Expected:
    """A counterexample that must be found.

    change     module and how its syntax tree is changed, where a rule is broken
    """

    name: str
    sentence: str
    case: Case
    obligation: str
    change: tuple[str, Callable[[ast.Module], None]] | None = None

    def modules(self, symbolic: bool = True) -> sources.Modules:
        if self.change is None:
            return sources.load(symbolic=symbolic)
        module, change = self.change
        tree = copy.deepcopy(sources.tree(module))
        change(tree)
        return sources.load({module: ast.fix_missing_locations(tree)}, symbolic)


def find(expected: Expected) -> Failure | None:
    """The counterexample, or None: then something is wrong with the proofs."""
    for way in prove(expected.case, expected.modules(), to_the_first_failure=True):
        for check in way.checks:
            if check.verdict == "refuted" and expected.obligation in check.name:
                return Failure(expected.case.name, check.name, way.outcome, check.verdict, check.values)
    return None


# --- the evictable-block deduction ---------------------------------------------------------------


def _forget_the_hits(tree: ast.Module) -> None:
    """`available` answers `free`: hits on free blocks are counted as free as well."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "available":
            node.body[-1] = ast.Return(ast.Name(node.args.args[0].arg, ast.Load()))


def _plain_admission(case: Case) -> Case:
    """An admission without adapter, drafts, threshold or external tokens, behind hits that are all free."""

    def act(w: World) -> Any:
        config, own = w.config, w.own
        w.path.assume(
            term(config.enable_prefix_caching),
            term(config.num_speculative_tokens) == 0,
            term(config.long_prefill_token_threshold) == 0,
            term(own.request.external_tokens) == 0,
            w.block_size >= 2,
            term(own.known) == length(own.request.prompt_token_ids),
            term(w.step.budget) >= term(own.known),
            fits_alone(w, own.request),
        )
        return case.act(w)

    contracts = {**case.contracts, "waiting.demand_of_waiting": _free_hits}
    return Case(case.name, act, case.goals, case.setting, case.bounded, contracts)


def _free_hits(w: World, state: Any, step: Any, live: Any) -> Any:
    a = demand_stub(w, state, step, live)
    w.path.assume(length(a.hits) == term(a.evictable), length(a.hits) >= 1)
    # True of every real pool, for hits differ; no proof needs it, but a run can only start where it holds.
    w.path.assume(term(a.evictable) <= w.state.pool.free.size)
    return a


def _plain_request(case: Case) -> Case:
    """A request that has said nothing yet, without drafts, hits or external tokens."""

    def act(w: World) -> Any:
        own = w.own
        w.path.assume(
            z3.Not(term(w.config.enable_prefix_caching)),
            term(w.config.num_speculative_tokens) == 0,
            term(own.request.external_tokens) == 0,
            term(own.known) == length(own.request.prompt_token_ids),
        )
        return case.act(w)

    return Case(case.name, act, case.goals, case.setting, case.bounded, case.contracts)


def _case(name: str) -> Case:
    return next(case for case in ADMITTING if case.name == name)


def _refund_lost(tree: ast.Module) -> None:
    """`grant` does not charge the budget."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "grant":
            node.body = [each for each in node.body if "budget -= " not in ast.unparse(each)]


def _drafts_complete(tree: ast.Module) -> None:
    """`complete_blocks` counts drafts as if they were known."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "complete_blocks":
            node.body[-1] = ast.Return(ast.parse("most(computed + tokens, 0) // block_size", mode="eval").body)


DEDUCTION = Expected(
    "evictable-block deduction dropped",
    "Without it the pool is over-allocated: a block that is hit is taken as well.",
    _plain_admission(_case("waiting.admit_one")),
    "POOL: what is missing is there",
    ("formulas", _forget_the_hits),
)
DEADLOCK = Expected(
    "progress.idle without: it fits the pool alone at its longest (PRG-1)",
    "A request that never fits is retried for ever.",
    _plain_request(progress.idle("it fits the pool alone at its longest (PRG-1)")),
    "PROGRESS: the first in line is admitted",
)
POLICY = Expected(
    "publish at schedule time, preempt what was scheduled in the same step",
    "The key stays on a block that nobody will write.",
    policing.case("preempt_scheduled"),
    "KEY: names the content",
)


def _premises() -> list[Expected]:
    found = []
    for premise in (*progress.PREMISES, progress.DRAFTS, *progress.LIMITED):
        case = progress.head(premise)
        sentence = "The head alone is refused, or asks for nothing."
        found.append(Expected(case.name, sentence, case, "PROGRESS: the head alone is served"))
    for premise in list(progress.IDLE_PREMISES)[1:]:
        case = progress.idle(premise)
        found.append(Expected(case.name, "The first in line waits.", case, "PROGRESS:"))
    return found


EXPECTED: tuple[Expected, ...] = (
    DEDUCTION,
    DEADLOCK,
    POLICY,
    *_premises(),
    Expected(
        "the budget is not charged",
        "More tokens than the budget are granted.",
        next(case for case in ALLOCATING if case.name == "allocation.grant"),
        "BUDGET: what is left and what was granted is the budget",
        ("allocation", _refund_lost),
    ),
    Expected(
        "drafts complete blocks",
        "A block is published that a rejected draft would have filled.",
        next(case for case in ALLOCATING if case.name == "prefix.publish_complete"),
        "tokens: the slice is inside",
        ("formulas", _drafts_complete),
    ),
)
