"""Mutants of the actions: each is the real text with one change, and each must make a proof fail.

A condition is dropped from a guard or an `and`, flipped, or always taken; an operator is swapped; a statement is left
out; a number is off by one.  What only tells or logs (reasons, the log, quirks) is left alone.  A mutant that every
proof survives is listed in `EQUIVALENT` with the reason, or fails the run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from spec.proofs import sources
from spec.proofs.cases import Case, prove
from spec.proofs.proving import Proved, side_by_side
from spec.proofs.theorems import CASES

TOLD = ("fits_without",)
"""Local names that only the log uses."""

OUTSIDE = {
    "scheduler.common_prefix_blocks": "only tells (OUT-5)",
    "prefix._log_odd_counts": "only logs",
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
    "allocation._extend_table: a.needed <= 0  with Lt for LtE": "nothing is missing, nothing is taken",
    "running.demand_of_running: step.budget < tokens  with LtE for Lt": "equal values are equal, but for the log",
    "running.demand_of_running: room < tokens  with LtE for Lt": "equal values are equal, but for the log",
    "waiting.demand_of_waiting: step.budget < tokens  with LtE for Lt": "equal values are equal, but for the log",
}
"""Mutants that no proof can kill, and why."""

MUTATED = tuple(name for name in sources.MODULES if name not in ("guards", "state", "policies"))

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
    """One change of one module; `first` to `last` are the lines of the function or table that it is in."""

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
        _changes(node)[which][1]()
        return sources.load({self.module: ast.fix_missing_locations(tree)})


@dataclass
class Fate:
    """What became of a mutant: the checks that failed, by case; none, and it survived."""

    mutant: Mutant
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
        name = statement.name if isinstance(statement, ast.FunctionDef) else ast.unparse(_target(statement))
        if f"{module}.{name}" in OUTSIDE:
            continue
        for node in _nodes(statement):
            for which, (what, _) in enumerate(_changes(node)):
                where = f" in {_text(around[id(node)])}" if isinstance(node, ast.Constant) else ""
                label = f"{module}.{name}: {what}{where}"
                yield Mutant(label, module, statement.lineno, statement.end_lineno or 0, (numbers[id(node)], which))


def _is_rule(statement: ast.stmt) -> bool:
    """A function, or a table of a guard."""
    table = isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(statement.value, (ast.Call, ast.Tuple))
    return isinstance(statement, ast.FunctionDef) or table


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


Change = tuple[str, Callable[[], None]]


def _changes(node: ast.AST) -> list[Change]:
    """The changes of a node, each with what it says and what does it."""
    found: list[Change] = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        found += _swaps(node, node.ops[0], lambda new: node.ops.__setitem__(0, new))
    elif isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            for what, change in _swaps(node, op, lambda new, at=at: node.ops.__setitem__(at, new)):  # type: ignore[misc]
                found.append((f"{what}, comparison {at + 1}", change))
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        found += _swaps(node, node.op, lambda new: setattr(node, "op", new))
    elif isinstance(node, ast.BoolOp):
        found += _swaps(node, node.op, lambda new: setattr(node, "op", new))
        for at, value in enumerate(node.values):
            if _tells_only(value):
                continue
            found.append((f"{_text(node)}  without  {_text(value)}", lambda at=at: _drop(node, at)))  # type: ignore[misc]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found.append((f"{_text(node)}  without not", lambda: _positive(node)))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        found.append((f"{node.value} -> {node.value + 1}", lambda: setattr(node, "value", node.value + 1)))  # type: ignore[operator]
    if isinstance(node, ast.Tuple) and any(
        isinstance(each, ast.Call) and _called(each) == "Conjunct" for each in node.elts
    ):
        for at, each in enumerate(node.elts):
            found.append((f"without conjunct {_text(each.args[0])}", lambda at=at: _drop(node, at)))  # type: ignore
    for body in ("body", "orelse"):
        statements = getattr(node, body, None)
        if isinstance(statements, list):
            for at, each in enumerate(statements):
                if _can_go(each):
                    found.append((f"without  {_text(each)}", lambda s=statements, at=at: s.__setitem__(at, ast.Pass())))  # type: ignore
    return found


def _swaps(node: ast.AST, op: ast.AST, put: Callable[[Any], None]) -> list[Change]:
    found: list[Change] = []
    for new in SWAPPED.get(type(op), ()):
        found.append((f"{_text(node)}  with {new.__name__} for {type(op).__name__}", lambda new=new: put(new())))  # type: ignore[misc]
    return found


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


def concerned(mutant: Mutant, proved: list[Proved]) -> list[str]:
    """The cases that run what was changed, those with the fewest paths first."""
    found = [
        (each.paths, each.case)
        for each in proved
        if any(stem == mutant.module and mutant.first <= line <= mutant.last for stem, line in each.lines)
    ]
    return [case for _, case in sorted(found)]


def run(proved: list[Proved], tell: Callable[[], None] = lambda: None, of: list[Mutant] | None = None) -> list[Fate]:
    """The fate of every mutant, in the order of the text."""
    all_of_them = mutants() if of is None else of
    work = [(mutant, tuple(concerned(mutant, proved))) for mutant in all_of_them]
    fates = {each[0]: fate for each, fate in side_by_side(_numbered_fate, work, tell)}
    return [fates[mutant] for mutant in all_of_them]


def _numbered_fate(work: tuple[Mutant, tuple[str, ...]]) -> Fate:
    mutant, names = work
    return fate(mutant, [CASE_BY_NAME[name] for name in names])


def fate(mutant: Mutant, cases: list[Case]) -> Fate:
    """Proves the cases again, up to the first that fails."""
    found, modules = Fate(mutant), mutant.modules()
    for case in cases:
        failed = [check for way in prove(case, modules, True) for check in way.checks if not check.proved]
        found.unknown |= any(check.verdict == "unknown" for check in failed)
        if failed:
            found.killed_by[case.name] = sorted({check.name for check in failed})
            return found
    return found
