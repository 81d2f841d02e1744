"""The modules of `spec`, loaded once more from their own source, so that they run on symbols.

The text is the text that runs on ints; nothing is translated.  Three things differ.  The builtins `len`, `sum`,
`tuple`, `range`, ... accept symbolic values as well (Python's own `len` must return an int).  Where a loop fills a
local list for a symbolic number of rounds, the empty display `[]` that the list begins as becomes `list()`.  And a
`while` of any number of rounds asks for its invariant before each test, `while another_round(...) and ...`.

A mutation is a change of the syntax tree of one module, so it acts on the same text.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import z3

import spec
from spec.proofs.symbols import paths
from spec.proofs.symbols.lists import Blocks, Folding, Members, Rounds, Tokens
from spec.proofs.symbols.loops import another_round
from spec.proofs.symbols.queues import Line
from spec.proofs.symbols.value import Number, Truth, number, term

FOLDER = Path(spec.__file__).parent
MODULES = (
    "guards",
    "formulas",
    "pool",
    "state",
    "prefix",
    "encoder",
    "lifecycle",
    "allocation",
    "running",
    "waiting",
    "outcome",
    "scheduler",
    "policies",
)
"""What is loaded anew, in the order of its imports; the rest (vocabulary, validity) is shared."""

FILLED = {
    ("longest_hit", "hits"): "list",
    ("commit", "still_running"): "queue",
    ("commit", "finished"): "count",
    ("commit", "emitted"): "count",
}
"""Local lists that a loop of symbolic length fills, and what they become."""

REPEATED = ("schedule", "visit_one_running")
"""Functions whose `while` runs any number of rounds."""

Modules = SimpleNamespace


@cache
def tree(module: str) -> ast.Module:
    """The syntax tree of a module of `spec`.  Not to be changed: copy it first."""
    return ast.parse(_path(module).read_text())


def _path(module: str) -> Path:
    return (FOLDER / "proofs" if module == "policies" else FOLDER) / f"{module}.py"


def load(
    mutated: Mapping[str, ast.Module] | None = None,
    symbolic: bool = True,
    executed: Callable[[str, int], None] | None = None,
) -> Modules:
    """The modules by name, each a namespace of its functions; `mutated` replaces the trees of some.

    Not `symbolic`: with Python's own builtins, to run a mutant on ints.  `executed` is told the module and the line of
    every statement that is run, and of every lambda.
    """
    loaded: dict[str, _Namespace] = {}

    def find(name: str, *rest: Any) -> Any:
        if name == "spec":
            return SimpleNamespace(**loaded)
        package, _, module = name.partition(".")
        if package == "spec" and module in loaded:
            return loaded[module]
        return importlib.import_module(name)

    names = {**vars(builtins), **(SYMBOLIC if symbolic else {}), "__import__": find, "executed": executed}
    for module in MODULES:
        changed = (mutated or {}).get(module)
        if changed is not None or not symbolic:
            code = _compile(module, changed or tree(module), symbolic)
        else:
            code = _code(module) if executed is None else _watched(module)
        namespace: dict[str, Any] = {"__name__": f"spec.{module}", "__builtins__": names}
        exec(code, namespace)
        loaded[module] = _Namespace(namespace)
    return SimpleNamespace(**loaded)


class _Namespace:
    """A module whose names can be replaced: a contract takes the place of a function that was proved."""

    def __init__(self, names: dict[str, Any]) -> None:
        object.__setattr__(self, "names", names)

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, "names")[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        object.__getattribute__(self, "names")[name] = value


@cache
def _code(module: str) -> CodeType:
    return _compile(module, tree(module))


@cache
def _watched(module: str) -> CodeType:
    return _compile(module, _Watch(module).visit(copy.deepcopy(tree(module))))


def _compile(module: str, source: ast.Module, symbolic: bool = True) -> CodeType:
    changed = _Loops().visit(copy.deepcopy(source)) if symbolic else source
    return compile(ast.fix_missing_locations(changed), str(_path(module)), "exec")


class _Watch(ast.NodeTransformer):
    """Every statement of a function, and every lambda, first tells that it is run: which mutants can a path notice?"""

    def __init__(self, module: str) -> None:
        self.module = module

    def _call(self, node: ast.AST) -> ast.expr:
        line = getattr(node, "lineno", 0)
        return ast.parse(f"executed({self.module!r}, {line})", mode="eval").body

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        for each in ast.walk(node):
            for block in ("body", "orelse"):
                if isinstance(statements := getattr(each, block, None), list):
                    setattr(each, block, [told for one in statements for told in (ast.Expr(self._call(one)), one)])
        return self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self.generic_visit(node)
        node.body = ast.BoolOp(ast.Or(), [self._call(node), node.body])
        return node


class _Loops(ast.NodeTransformer):
    """What a loop of symbolic length needs: `hits = list()` for `hits = []`; `while another_round(...) and ...`."""

    def __init__(self) -> None:
        self.function = ""
        self.repeated = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.function, self.repeated = node.name, 0
        self.generic_visit(node)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        if self.function in REPEATED:
            round_ = ast.parse(f"another_round({self.function!r}, {self.repeated})", mode="eval").body
            node.test = ast.BoolOp(ast.And(), [round_, node.test])
            self.repeated += 1
        self.generic_visit(node)
        return node

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        """`{f(x) for x in xs if p(x)}` becomes `set_of(xs, lambda x: f(x), lambda x: p(x))`."""
        self.generic_visit(node)
        (over,) = node.generators
        target = ast.unparse(over.target)
        kept = " and ".join(f"({ast.unparse(each)})" for each in over.ifs) or "True"
        text = f"set_of({ast.unparse(over.iter)}, lambda {target}: {ast.unparse(node.elt)}, lambda {target}: {kept})"
        return ast.parse(text, mode="eval").body

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = self._filled(node.targets[0], node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None:
            node.value = self._filled(node.target, node.value)
        return node

    def _filled(self, target: ast.expr, value: ast.expr) -> ast.expr:
        kind = FILLED.get((self.function, target.id)) if isinstance(target, ast.Name) else None
        if kind is None or not isinstance(value, ast.List):
            return value
        return ast.Call(ast.Name(kind, ast.Load()), [], [])


# --- builtins ------------------------------------------------------------------------------------


def _len(value: Any) -> Any:
    return value.length() if hasattr(value, "length") else len(value)


def _tuple(value: Any = ()) -> Any:
    return value.copy() if hasattr(value, "copy_symbolic") else tuple(value)


def _list(value: Any = None) -> Any:
    if value is None:
        return Blocks.empty("list")
    return value.copy() if hasattr(value, "copy_symbolic") else list(value)


def _sum(values: Iterator[Any]) -> Any:
    """The sum over a list of symbolic length is a tracked total; over anything else the sum."""
    with Folding() as folding:
        values = iter(values)
        first = next(values, 0)
        if folding.over is not None:
            return Number(folding.over.total(folding.element, number(first)))
    return first + sum(values)


def _range(*bounds: Any) -> Any:
    if all(isinstance(each, int) for each in bounds):
        return range(*bounds)
    start, stop = bounds if len(bounds) == 2 else (0, bounds[0])
    return Rounds(term(start), term(stop))


def _reversed(values: Any) -> Any:
    return values.reversed() if hasattr(values, "copy_symbolic") else reversed(values)


def _most(a: Any, b: Any) -> Any:
    return Number(z3.If(term(a) >= term(b), term(a), term(b))) if _symbolic(a, b) else max(a, b)


def _least(a: Any, b: Any) -> Any:
    return Number(z3.If(term(a) <= term(b), term(a), term(b))) if _symbolic(a, b) else min(a, b)


def _set_of(values: Any, element: Callable[[Any], Any], kept: Callable[[Any], bool]) -> Any:
    """A set made of a queue of any length is any set."""
    if isinstance(values, Line):
        made = Members("set of what is in a queue")
        for each, there in values.told():
            held = z3.And(there, values.inside(values.places[each]), number(kept(each)) != 0)
            paths.current().assume(z3.Implies(held, made.member[term(element(each))]))
        return made
    return {element(each) for each in values if kept(each)}


def _queue() -> Line:
    return Line.empty(paths.current().world, "still running")


def _count() -> Tokens:
    return Tokens(z3.IntVal(0))


def _symbolic(*values: Any) -> bool:
    return any(isinstance(each, (Number, Truth)) for each in values)


def _sorted(values: Any) -> Any:
    return values if hasattr(values, "length") else sorted(values)


SYMBOLIC: dict[str, Callable[..., Any]] = {
    "len": _len,
    "tuple": _tuple,
    "list": _list,
    "sum": _sum,
    "range": _range,
    "reversed": _reversed,
    "max": _most,
    "min": _least,
    "sorted": _sorted,
    "another_round": another_round,
    "set_of": _set_of,
    "queue": _queue,
    "count": _count,
}
