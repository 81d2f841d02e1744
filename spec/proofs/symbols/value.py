"""A symbolic value: a whole number or a truth value that stands for all of them at once.

Arithmetic and comparisons build z3 terms.  The truth test of a `Truth` asks the current path which way to go, so
that plain `if`, `and`, `or`, `not` and `while` in the actions fork; see `paths`.
"""

from __future__ import annotations

from typing import Any

import z3

from spec.proofs.symbols import paths


def term(value: Any) -> Any:
    """The z3 term of a symbolic or a concrete value."""
    if isinstance(value, (Number, Truth)):
        return value.term
    if isinstance(value, bool):
        return z3.BoolVal(value)
    if isinstance(value, int):
        return z3.IntVal(value)
    raise TypeError(f"{value!r} is no number")


def number(value: Any) -> Any:
    """The z3 term of a value that is counted with: a truth value counts as 0 or 1, as in Python."""
    found = term(value)
    return z3.If(found, z3.IntVal(1), z3.IntVal(0)) if z3.is_bool(found) else found


class Truth:
    """A truth value."""

    __slots__ = ("term",)

    def __init__(self, term: Any) -> None:
        self.term = term

    def __bool__(self) -> bool:
        return paths.current().choose(self.term)

    def __repr__(self) -> str:
        return str(z3.simplify(self.term))

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        return Truth(self.term == term(other))

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return Truth(self.term != term(other))

    __hash__ = None  # type: ignore[assignment]


class Number:
    """A whole number.  It has no hash: a symbol is never a key of a concrete dict."""

    __slots__ = ("term",)

    def __init__(self, term: Any) -> None:
        self.term = term

    def __repr__(self) -> str:
        return str(z3.simplify(self.term))

    def __bool__(self) -> bool:
        return paths.current().choose(self.term != 0)

    def __add__(self, other: Any) -> Number:
        return Number(self.term + number(other))

    def __radd__(self, other: Any) -> Number:
        return Number(number(other) + self.term)

    def __sub__(self, other: Any) -> Number:
        return Number(self.term - number(other))

    def __rsub__(self, other: Any) -> Number:
        return Number(number(other) - self.term)

    def __mul__(self, other: Any) -> Number:
        return Number(self.term * number(other))

    def __rmul__(self, other: Any) -> Number:
        return Number(number(other) * self.term)

    def __neg__(self) -> Number:
        return Number(-self.term)

    def __floordiv__(self, other: Any) -> Number:
        return Number(_floor(self.term, number(other)))

    def __rfloordiv__(self, other: Any) -> Number:
        return Number(_floor(number(other), self.term))

    def __lt__(self, other: Any) -> Truth:
        return Truth(self.term < number(other))

    def __le__(self, other: Any) -> Truth:
        return Truth(self.term <= number(other))

    def __gt__(self, other: Any) -> Truth:
        return Truth(self.term > number(other))

    def __ge__(self, other: Any) -> Truth:
        return Truth(self.term >= number(other))

    def __eq__(self, other: object) -> Any:
        return False if other is None else Truth(self.term == number(other))

    def __ne__(self, other: object) -> Any:
        return True if other is None else Truth(self.term != number(other))

    __hash__ = None  # type: ignore[assignment]


def _floor(a: Any, b: Any) -> Any:
    """Python's floor division; z3 divides as Euclid does, which is the same for a positive divisor."""
    paths.current().require("the divisor is positive", b >= 1)
    return a / b
