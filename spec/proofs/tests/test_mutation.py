"""Every mutant of the actions makes a proof fail, or is listed with the reason why it cannot."""

from __future__ import annotations

from spec.proofs import mutation
from spec.proofs.proving import prove_all
from spec.proofs.theorems import CASES


def test_every_mutant_dies_or_is_listed() -> None:
    fates = mutation.run(prove_all(CASES))
    assert [fate.mutant.name for fate in fates if fate.unknown] == []
    assert sorted(fate.mutant.name for fate in fates if not fate.killed_by) == sorted(mutation.EQUIVALENT)
    assert len(fates) > 300
