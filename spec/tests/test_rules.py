"""A rule's id, its sentence and its code can be found from one another."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import spec
from spec.laws import LAW_BY_ID
from spec.outcomes import OUTCOMES
from spec.rules import RULE_BY_ID, RULES, Rule

SOURCES = {path.stem: path.read_text() for path in Path(spec.__file__).parent.glob("*.py") if path.stem != "rules"}
ID = re.compile(r"\b[A-Z]{1,6}-(?:\d+(?:\.\d+)?|A)\b")


def expanded(text: str) -> set[str]:
    """Rule ids in a text; `A-1 to A-3` names all three."""
    found = set(ID.findall(text))
    for family, first, last in re.findall(r"\b([A-Z]+)-(\d+) to [A-Z]+-(\d+)", text):
        found |= {f"{family}-{n}" for n in range(int(first), int(last) + 1)} & RULE_BY_ID.keys()
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_code_of_a_rule_exists_and_names_it(rule: Rule) -> None:
    module, _, name = rule.code.partition(".")
    found = importlib.import_module(f"spec.{module}")
    if name:
        assert hasattr(found, name)
    assert rule.id in expanded(SOURCES[module])


def test_every_rule_named_in_the_code_has_a_sentence() -> None:
    named = set().union(*(expanded(text) for text in SOURCES.values()))
    assert named <= RULE_BY_ID.keys()


def test_ids_are_unique() -> None:
    assert len(RULE_BY_ID) == len(RULES)


def test_every_outcome_belongs_to_a_rule() -> None:
    assert set(OUTCOMES.values()) <= RULE_BY_ID.keys()


def test_laws_and_rules_do_not_share_ids() -> None:
    assert not LAW_BY_ID.keys() & RULE_BY_ID.keys()
