"""Mutants of the actions: each is the real text with one change, and each must make a proof fail.

A condition is dropped from a guard or an `and`, flipped, or always taken; an operator is swapped; a statement is left
out; a number is off by one.  What only tells or logs (reasons, the log, quirks) is left alone.  A mutant that every
proof survives is listed in `EQUIVALENT` with the reason, or fails the run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from spec.proofs.cases.case import ways
from spec.proofs.proving import Proved, side_by_side
from spec.proofs.symbols import sources
from spec.proofs.symbols.paths import Check, Prefix
from spec.proofs.theorems import CASES

TOLD = ("fits_without",)
"""Local names that only the log uses."""

OUTSIDE = {
    "scheduler.common_prefix_blocks": "only tells (OUT-5)",
    "scheduler.Oracle": "hands each call on",
    "prefix._log_odd_counts": "only logs",
    "policies.visit_under_priority": "drives the policies in a run",
    "policies.schedule_under_priority": "drives the policies in a run",
    "prefix._last_item_only": "a quirk",
}
"""Functions that no case runs, and why."""

EQUIVALENT: dict[str, str] = {
    "formulas.least: a <= b  with Lt for LtE": "equal values are equal",
    "formulas.most: a >= b  with Gt for GtE": "equal values are equal",
    "formulas.below_threshold: 0 < threshold < tokens  with LtE for Lt, comparison 2": "equal values are equal",
    "prefix._intern: 1 -> 2 in len(state.key_table) + 1": "keys are numbered with gaps, and still differ",
    "encoder._would_be_cut: view.computed < view.item.offset  with LtE for Lt": (
        "`at_start` covers it, for proofs have no quirk"
    ),
    "allocation.grant: live.drafts and admission is Admission.RUNNING  with Or for And": (
        "an admission schedules no draft, and no drafts are none"
    ),
    "allocation.grant: live.drafts and admission is Admission.RUNNING  without  live.drafts": "no drafts are none",
    "allocation.grant: live.drafts and admission is Admission.RUNNING  without  admission is Admission.RUNNING": (
        "an admission reaches no draft"
    ),
    "outcome.stop: at_cap and 'length_before_stop' in state.profile.quirks  without  at_cap": "proofs have no quirk",
    "allocation.Attempt: 0 -> 1 in needed = 0": "each demand works it out",
    "allocation._extend_table: a.needed <= 0  with Lt for LtE": "nothing is missing, nothing is taken",
    "running.demand_of_running: step.budget < tokens  with LtE for Lt": "equal values are equal, but for the log",
    "running.demand_of_running: room < tokens  with LtE for Lt": "equal values are equal, but for the log",
    "waiting.demand_of_waiting: step.budget < tokens  with LtE for Lt": "equal values are equal, but for the log",
}
"""Mutants that no proof can kill, and why."""

MUTATED = tuple(name for name in sources.MODULES if name != "guards")

CASE_BY_NAME = {case.name: case for case in CASES}

SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


@dataclass(frozen=True)
class Mutant:
    """One change of one module; `first` to `last` are the lines of the statement or table that it is in."""

    name: str
    module: str
    first: int
    last: int
    change: tuple[int, int]
    """Number of the node in the tree, number of the change of that node."""

    def modules(self) -> sources.Modules:
        tree = copy.deepcopy(sources.tree(self.module))
        number, which = self.change
        node = list(ast.walk(tree))[number]
        _changes(node)[which].do()
        return sources.load({self.module: ast.fix_missing_locations(tree)})


class Until(IntEnum):
    """How long a mutant is proved: up to a path that fails, to the end of the case that it is in, or all of it."""

    PATH = 1
    CASE = 2
    END = 3


@dataclass
class Fate:
    """What became of a mutant: the cases that were tried, and the checks that failed; none, and it survived."""

    mutant: Mutant
    tried: list[str] = field(default_factory=list)
    killed_by: dict[str, list[str]] = field(default_factory=dict)
    unknown: bool = False


# --- finding them --------------------------------------------------------------------------------


def mutants() -> list[Mutant]:
    """Every mutant, in the order of the text."""
    return [mutant for module in MUTATED for mutant in _of_module(module)]


def _of_module(module: str) -> Iterator[Mutant]:
    tree = sources.tree(module)
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    around = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for statement in tree.body:
        if not _is_rule(statement):
            continue
        name = _name(statement)
        if f"{module}.{name}" in OUTSIDE:
            continue
        for node in _nodes(statement):
            for which, change in enumerate(_changes(node)):
                where = f" in {_text(around[id(node)])}" if isinstance(node, ast.Constant) else ""
                label = f"{module}.{name}: {change.says}{where}"
                yield Mutant(label, module, *_lines(change.of, around), (numbers[id(node)], which))


def _lines(node: ast.AST, around: dict[int, ast.AST]) -> tuple[int, int]:
    """The line of the statement that a node is in; of a table or a class all lines: any may run when it is used."""
    while not isinstance(node, ast.stmt):
        node = around[id(node)]
    if isinstance(of := around[id(node)], ast.ClassDef) and not isinstance(node, ast.FunctionDef):
        return of.lineno, of.end_lineno or 0
    table = isinstance(around[id(node)], ast.Module) and not isinstance(node, ast.FunctionDef)
    return node.lineno, (node.end_lineno or 0) if table else node.lineno


def _is_rule(statement: ast.stmt) -> bool:
    """A function, a class that is made with something in it, or a table of a guard."""
    table = isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(statement.value, (ast.Call, ast.Tuple))
    return isinstance(statement, (ast.FunctionDef, ast.ClassDef)) or table


def _name(statement: ast.stmt) -> str:
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return statement.name
    return ast.unparse(_target(statement))


def _target(statement: ast.stmt) -> ast.expr:
    if isinstance(statement, ast.AnnAssign):
        return statement.target
    assert isinstance(statement, ast.Assign)
    return statement.targets[0]


def _nodes(root: ast.AST) -> Iterator[ast.AST]:
    """What may be changed under a node, outermost first."""
    yield root
    for child in ast.iter_child_nodes(root):
        if not _tells_only(child):
            yield from _nodes(child)
    if isinstance(root, ast.Call) and _called(root) == "Conjunct":
        return


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _tells_only(node: ast.AST) -> bool:
    """Logs, reasons, annotations, docstrings, quirks: nothing that a law is about."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, (ast.arguments, ast.JoinedStr)):
        return True
    text = ast.unparse(node) if isinstance(node, (ast.stmt, ast.expr)) else ""
    if isinstance(node, ast.Expr) and (".log." in text or text.startswith("_log")):
        return True
    if isinstance(node, ast.If) and not node.orelse and all(_tells_only(each) for each in node.body):
        return True
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in TOLD:
        return True
    if isinstance(node, ast.Lambda) and isinstance(node.body, (ast.JoinedStr, ast.Constant)):
        return True
    return isinstance(node, (ast.Compare, ast.IfExp, ast.BoolOp)) and "quirk" in text and "and" not in text


class Change(NamedTuple):
    """What it says, what does it, and the node that it is of."""

    says: str
    do: Callable[[], None]
    of: ast.AST


def _changes(node: ast.AST) -> list[Change]:
    """The changes that are made at a node, in a fixed order."""
    found: list[Change] = []
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            which = f", comparison {at + 1}" if len(node.ops) > 1 else ""
            found += _swaps(node, op, partial(node.ops.__setitem__, at), which)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        found += _swaps(node, node.op, partial(setattr, node, "op"))
    elif isinstance(node, ast.BoolOp):
        found += _swaps(node, node.op, partial(setattr, node, "op"))
        for at, value in enumerate(node.values):
            if not _tells_only(value):
                says = f"{_text(node)}  without  {_text(value)}"
                found.append(Change(says, partial(_drop, node, at), node))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found.append(Change(f"{_text(node)}  without not", partial(_positive, node), node))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        says = f"{node.value} -> {node.value + 1}"
        found.append(Change(says, partial(setattr, node, "value", node.value + 1), node))
    elif isinstance(node, ast.Tuple):
        for at, each in enumerate(node.elts):
            if isinstance(each, ast.Call) and _called(each) == "Conjunct":
                says = f"without conjunct {_text(each.args[0])}"
                found.append(Change(says, partial(_drop, node, at), node))
    return found + _without_statements(node)


def _without_statements(node: ast.AST) -> list[Change]:
    found: list[Change] = []
    for name in ("body", "orelse"):
        if isinstance(block := getattr(node, name, None), list):
            for at, each in enumerate(block):
                if _can_go(each):
                    found.append(Change(f"without  {_text(each)}", partial(block.__setitem__, at, ast.Pass()), each))
    return found


def _swaps(node: ast.AST, op: ast.AST, put: Callable[[Any], None], which: str = "") -> list[Change]:
    return [
        Change(f"{_text(node)}  with {new.__name__} for {type(op).__name__}{which}", partial(put, new()), node)
        for new in SWAPPED.get(type(op), ())
    ]


def _drop(node: ast.BoolOp | ast.Tuple, at: int) -> None:
    """Without one part; where one is left of two, what says nothing stands beside it."""
    parts: list[ast.expr] = node.values if isinstance(node, ast.BoolOp) else node.elts
    del parts[at]
    if isinstance(node, ast.BoolOp) and len(parts) == 1:
        parts.append(ast.Constant(isinstance(node.op, ast.And)))


def _positive(node: ast.UnaryOp) -> None:
    node.op = ast.Not()
    node.operand = ast.UnaryOp(ast.Not(), node.operand)


def _can_go(statement: ast.stmt) -> bool:
    """An assignment, a call or a break whose absence leaves a program that runs up to its use."""
    if _tells_only(statement):
        return False
    if isinstance(statement, ast.Assign):
        return isinstance(statement.targets[0], (ast.Attribute, ast.Subscript))
    return isinstance(statement, (ast.Expr, ast.AugAssign, ast.Delete, ast.Break))


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:90]


# --- proving them --------------------------------------------------------------------------------


Start = tuple[str, tuple[Prefix, ...]]
"""A case, and the beginnings of its paths that come to what was changed."""


def concerned(mutant: Mutant, proved: list[Proved]) -> list[Start]:
    """What has to be proved again, the shortest first: on every other path nothing is different."""
    found = []
    for each in proved:
        met = [
            prefixes
            for (module, line), prefixes in each.reached.items()
            if module == mutant.module and mutant.first <= line <= mutant.last
        ]
        if met:
            found.append((each.case, tuple(sorted(frozenset().union(*met)))))
    return sorted(found, key=lambda start: len(start[1]))


def run(
    proved: list[Proved],
    tell: Callable[[], None] = lambda: None,
    of: list[Mutant] | None = None,
    until: Until = Until.END,
) -> list[Fate]:
    """The fate of every mutant, in the order of the text."""
    all_of_them = mutants() if of is None else of
    work = [(mutant, tuple(concerned(mutant, proved)), until) for mutant in all_of_them]
    fates = {each[0]: fate for each, fate in side_by_side(_fate, work, tell)}
    return [fates[mutant] for mutant in all_of_them]


def _fate(work: tuple[Mutant, tuple[Start, ...], Until]) -> Fate:
    return fate(*work)


def fate(mutant: Mutant, starts: Iterable[Start], until: Until = Until.END) -> Fate:
    """Proves again what a mutant may break."""
    found, modules = Fate(mutant), mutant.modules()
    for name, prefixes in starts:
        found.tried.append(name)
        failed: list[Check] = []
        for way in ways(CASE_BY_NAME[name], modules, verdicts_only=True, prefixes=prefixes):
            failed += way.failed
            if failed and until is Until.PATH:
                break
        found.unknown |= any(check.verdict == "unknown" for check in failed)
        if failed:
            found.killed_by[name] = sorted({check.name for check in failed})
            if until is not Until.END:
                break
    return found
