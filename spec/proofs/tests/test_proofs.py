"""Everything is proved, nothing is vacuous, and what must be refuted is."""

from __future__ import annotations

import pytest

from spec.proofs import lemmas, page, traces
from spec.proofs.counterexamples import EXPECTED, Expected, find
from spec.proofs.proving import Proved, prove_all, silent_invariants, unreached
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


def test_every_invariant_says_something() -> None:
    assert silent_invariants() == []


@pytest.mark.parametrize("lemma", lemmas.LEMMAS, ids=lambda lemma: lemma.name)
def test_lemmas_are_proved(lemma: lemmas.Lemma) -> None:
    assert lemmas.refuted(lemma) is False


@pytest.mark.parametrize("lemma", lemmas.BROKEN, ids=lambda lemma: lemma.sentence)
def test_wrong_lemmas_are_noticed(lemma: lemmas.Lemma) -> None:
    assert lemmas.refuted(lemma) is True


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.name)
def test_counterexamples_are_found(expected: Expected) -> None:
    assert find(expected) is not None


@pytest.mark.parametrize(
    ("expected", "law"),
    list(zip((each for each, _ in traces.RUNS), ("POOL", "PROGRESS", "CONTENT"), strict=True)),
    ids=lambda value: getattr(value, "name", value),
)
def test_counterexamples_show_on_the_running_spec(expected: Expected, law: str) -> None:
    run = traces.run_of(expected)
    assert run is not None
    assert traces.replay(run, traces.broken_scheduler(expected)(run.config)).startswith(law)
    lawful = traces.replay(run, traces.lawful_scheduler(expected)(run.config))
    assert lawful == "" or lawful.startswith("refused")
