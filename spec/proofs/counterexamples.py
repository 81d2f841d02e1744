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

from spec.proofs import reaching
from spec.proofs.cases import policing, progress
from spec.proofs.cases.admitting import CASES as ADMITTING
from spec.proofs.cases.allocating import CASES as ALLOCATING
from spec.proofs.cases.case import Case, ways
from spec.proofs.proving import Failure, failure_of, side_by_side
from spec.proofs.state.world import World
from spec.proofs.symbols import sources


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


Extra = Callable[[World], list[Any]]


def find(expected: Expected, extra: Extra = lambda w: []) -> Failure | None:
    """The counterexample, or None: then something is wrong with the proofs.  `extra` is assumed besides."""
    case = reaching.assuming(expected.case, extra, lambda w, answer: [])
    for way in ways(case, expected.modules()):
        for check in way.checks:
            if check.verdict == "refuted" and expected.obligation in check.name:
                return failure_of(case.name, check.name, way)
    return None


# --- rules that are broken -----------------------------------------------------------------------


def _forget_the_hits(tree: ast.Module) -> None:
    """`available` answers `free`: hits on free blocks are counted as free as well."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "available":
            node.body[-1] = ast.Return(ast.Name(node.args.args[0].arg, ast.Load()))


def _budget_not_charged(tree: ast.Module) -> None:
    """`grant` does not charge the budget."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "grant":
            node.body = [each for each in node.body if "budget -= " not in ast.unparse(each)]


def _drafts_complete(tree: ast.Module) -> None:
    """`complete_blocks` counts drafts as if they were known."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "complete_blocks":
            node.body[-1] = ast.Return(ast.parse("most(computed + tokens, 0) // block_size", mode="eval").body)


# --- what must be found --------------------------------------------------------------------------


def _case(name: str) -> Case:
    return next(case for case in (*ADMITTING, *ALLOCATING) if case.name == name)


NEVER_FITS = "it fits the pool alone at its longest (PRG-1)"

DEDUCTION = Expected(
    "evictable-block deduction dropped",
    "Without it the pool is over-allocated: a block that is hit is taken as well.",
    reaching.behind_free_hits(_case("waiting.admit_one")),
    "POOL: what is missing is there",
    ("formulas", _forget_the_hits),
)
DEADLOCK = Expected(
    f"progress.idle without: {NEVER_FITS}",
    "A request that never fits is retried for ever.",
    reaching.first_request(progress.idle(NEVER_FITS)),
    "PROGRESS: the first in line is admitted",
)
POLICY = Expected(
    "publish at schedule time, preempt what was scheduled in the same step",
    "The key stays on a block that nobody will write.",
    reaching.taken_back(policing.case("preempt_scheduled")),
    "KEY: names the content",
)
UNCHARGED = Expected(
    "the budget is not charged",
    "More tokens than the budget are granted.",
    reaching.two_alike(_case("allocation.grant")),
    "BUDGET: what is left and what was granted is the budget",
    ("allocation", _budget_not_charged),
)


def _premises() -> list[Expected]:
    found = []
    for premise in (*progress.PREMISES, progress.DRAFTS, *progress.LIMITED):
        case = progress.head(premise)
        sentence = "The head alone is refused, or asks for nothing."
        found.append(Expected(case.name, sentence, case, "PROGRESS: the head alone is served"))
    for premise in list(progress.HEAD_PREMISES)[:2]:
        case = progress.visit_head(premise)
        sentence = "Who is visited is preempted itself."
        found.append(Expected(case.name, sentence, case, "PROGRESS: the head is served"))
    for premise in list(progress.IDLE_PREMISES)[1:]:
        case = progress.idle(premise)
        found.append(Expected(case.name, "The first in line waits.", case, "PROGRESS:"))
    for premise in progress.RUN_PREMISES:
        case = progress.run(premise)
        sentence = "There is no end to the steps of a request."
        found.append(Expected(case.name, sentence, case, "PROGRESS: the bound on its steps falls"))
    return found


EXPECTED: tuple[Expected, ...] = (
    DEDUCTION,
    DEADLOCK,
    POLICY,
    UNCHARGED,
    *_premises(),
    Expected(
        "drafts complete blocks",
        "A block is published that a rejected draft would have filled.",
        _case("prefix.publish_complete"),
        "tokens: the slice is inside",
        ("formulas", _drafts_complete),
    ),
)


def find_all() -> dict[str, Failure | None]:
    """By name, what must be found; side by side."""
    found = dict(side_by_side(_find_numbered, list(range(len(EXPECTED))), lambda: None))
    return {expected.name: found[number] for number, expected in enumerate(EXPECTED)}


def _find_numbered(number: int) -> Failure | None:
    return find(EXPECTED[number])
