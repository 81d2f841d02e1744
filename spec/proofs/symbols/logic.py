"""The counting lemmas as formulas."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import z3

from spec.counting import Claims

Term = Any


def formula(claims: Claims) -> Term:
    """All claims at once, those under one condition together."""
    facts = []
    for when, each in groupby(claims, key=lambda claim: claim.when):
        thens = [claim.then for claim in each]
        then = thens[0] if len(thens) == 1 else z3.And(*thens)
        facts.append(z3.Implies(z3.And(*when), then) if when else then)
    return facts[0] if len(facts) == 1 else z3.And(*facts)


def one(truth: Term) -> Term:
    """A truth value that is counted: 1 or 0."""
    return z3.If(truth, z3.IntVal(1), z3.IntVal(0))
