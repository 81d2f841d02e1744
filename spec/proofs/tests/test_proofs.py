"""Everything is proved, and nothing is vacuous."""

from __future__ import annotations

import pytest

from spec.proofs import lemmas, page
from spec.proofs.proving import Proved, chosen, prove_all, prove_case, silent_invariants, unreached
from spec.proofs.theorems import CASES, THEOREMS


@pytest.fixture(scope="module")
def proved() -> list[Proved]:
    return prove_all(CASES)


@pytest.mark.xdist_group("proofs")
def test_every_obligation_is_proved(proved: list[Proved]) -> None:
    assert [failure for each in proved for failure in each.failures] == []


@pytest.mark.xdist_group("proofs")
def test_every_path_has_a_witness_and_every_outcome_a_path(proved: list[Proved]) -> None:
    assert {each.case: each.vacuous for each in proved if each.vacuous} == {}
    assert unreached(proved) == []


@pytest.mark.xdist_group("proofs")
def test_every_theorem_has_obligations(proved: list[Proved]) -> None:
    served = {row.theorem for each in proved for row in each.obligations}
    assert {theorem.id for theorem in THEOREMS} <= served


@pytest.mark.xdist_group("proofs")
def test_the_page_is_what_is_proved(proved: list[Proved]) -> None:
    assert page.PAGE.read_text() == page.page(proved), "python -m spec.proofs.page writes it anew"


def test_a_decision_of_a_guard_names_its_conjunct() -> None:
    (visit,) = chosen("running.VISIT")
    told = [decision for path in prove_case(visit).paths for decision in path.decisions]
    assert any(decision.endswith("budget of visit: yes") for decision in told), told


def test_every_invariant_says_something() -> None:
    assert silent_invariants() == []


@pytest.mark.parametrize("lemma", lemmas.LEMMAS, ids=lambda lemma: lemma.name)
def test_lemmas_are_proved(lemma: lemmas.Lemma) -> None:
    assert lemmas.refuted(lemma) is False


@pytest.mark.parametrize("lemma", lemmas.BROKEN, ids=lambda lemma: lemma.sentence)
def test_wrong_lemmas_are_noticed(lemma: lemmas.Lemma) -> None:
    assert lemmas.refuted(lemma) is True
