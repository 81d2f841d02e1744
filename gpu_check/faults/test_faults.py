"""Every seeded fault is caught, each detector is needed, and nothing is found where there is no fault."""

from __future__ import annotations

import re

import pytest

from gpu_check.faults.hunt import DETECTORS, PAGE, hunt, row
from gpu_check.faults.table import FAULTS, Fault

ROWS = [line for line in PAGE.read_text().splitlines() if re.match(r"\| [a-z]+(-[a-z]+)+ \|", line)]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught(fault: Fault) -> None:
    """By the detectors that the page names."""
    assert hunt(fault)
    assert row(fault) in ROWS, "run `python -m gpu_check.faults.hunt --write`"


def test_a_sound_executor_is_not_accused() -> None:
    assert hunt(None) == frozenset()


def test_the_page_lists_the_table() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 25
    assert [line.split("|")[1].strip() for line in ROWS] == names
    assert f"{len(names)} faults, {len(names)} caught." in PAGE.read_text()


@pytest.mark.parametrize("detector", ["bounds", "owner", "oracle"])
def test_a_detector_is_needed(detector: str) -> None:
    """Some fault is seen by it alone; poison and written see early what the oracle sees as numbers."""
    column = 4 + DETECTORS.index(detector)
    alone = [line for line in ROWS if [n for n, cell in enumerate(line.split("|")) if cell.strip() == "x"] == [column]]
    assert alone
