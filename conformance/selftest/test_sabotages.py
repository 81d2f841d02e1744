"""The suite can fail: it catches every sabotage, and each law catches one by itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from conformance.adapters.reference import IMPLEMENTATION
from conformance.lockstep import Judge, Level
from conformance.selftest.sabotage import REFERENCE, TRACES, Sabotage, StaleSabotage
from conformance.selftest.sabotages import PAGE, TIME_LIMIT_S, catchers, hunt, page
from conformance.selftest.tables import SABOTAGES
from conformance.shrink import failure_of
from conformance.trace import read
from conformance.walk import Tally, walk
from spec.laws import LAW_BY_ID
from spec.outcomes import OUTCOMES
from spec.vocabulary import PROFILES

SPEC = REFERENCE.parent / "spec"

UNATTACKED: dict[str, str] = {
    "RUN-7": "who preempts itself is the tail: to go on behind the tail changes nothing",
    "ADM-3.6": "attacked as BUDGET by empty-admission",
}
"""Rules among the outcomes that no sabotage names, and why."""


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.name)
def test_a_sabotage_is_caught(sabotage: Sabotage) -> None:
    assert hunt(sabotage, Level.IDENTICAL) is not None


def test_the_report() -> None:
    """One test, because each of its halves hunts every sabotage by the laws alone."""
    idle = [law for law, caught in catchers().items() if not caught]
    assert not idle, "laws that no sabotage showed to be able to fail"
    assert PAGE.read_text() == page(), "run `python -m conformance.selftest.sabotages --write`"


# --- the table -----------------------------------------------------------------------------------


def test_the_table_is_well_formed() -> None:
    names = [sabotage.name for sabotage in SABOTAGES]
    assert len(set(names)) == len(names) >= 65
    assert [name for name in names if not re.fullmatch(r"[a-z]+(-[a-z]+)+", name)] == []


def test_what_is_attacked_exists() -> None:
    text = "".join(path.read_text() for path in SPEC.glob("*.py"))
    known = set(re.findall(r"\b[A-Z]+-(?:\d+(?:\.\d+)?|[A-Z])\b", text)) | set(LAW_BY_ID)
    assert {sabotage.breaks for sabotage in SABOTAGES} - known == set()


def test_every_outcome_of_the_spec_is_attacked() -> None:
    assert set(OUTCOMES.values()) - {sabotage.breaks for sabotage in SABOTAGES} == set()


def test_a_fragment_that_is_gone_is_reported() -> None:
    stale = Sabotage("stale-one", "ADV-1", "reference.scheduler", "no such fragment", "pass")
    with pytest.raises(StaleSabotage, match=r"stale-one: its fragment stands 0 times in reference\.scheduler"):
        stale.load()


def test_the_sound_reference_stays_as_it_is() -> None:
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "reference"}
    finders = list(sys.meta_path)
    first, second = SABOTAGES[0].load(), SABOTAGES[0].load()
    after = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "reference"}
    assert after == before
    assert sys.meta_path == finders
    assert first.factory is not second.factory is not IMPLEMENTATION.factory


@pytest.mark.parametrize("level", Level)
def test_a_copy_with_nothing_changed_is_not_caught(level: Level) -> None:
    sound = SABOTAGES[0]
    unchanged = Sabotage("nothing-changed", sound.breaks, sound.module, sound.old, sound.old).load()
    walk(unchanged, Judge(PROFILES["vllm-0.8.5"], level, time_limit_s=TIME_LIMIT_S), "nothing-changed", 2_000, Tally())


# --- the traces ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(TRACES[0].glob("*.jsonl")), ids=lambda path: path.stem)
@pytest.mark.parametrize("level", Level)
def test_the_sound_reference_passes_the_traces(path: Path, level: Level) -> None:
    trace = read(path)
    judge = Judge(PROFILES["vllm-0.8.5"], level, time_limit_s=TIME_LIMIT_S)
    assert trace.header.id == path.stem
    assert failure_of(IMPLEMENTATION, judge, trace.header.config, trace.events) is None
    assert path.stem in {sabotage.trace for sabotage in SABOTAGES}


@pytest.mark.parametrize("sabotage", [s for s in SABOTAGES if s.trace], ids=lambda sabotage: sabotage.name)
def test_a_named_trace_shows_its_sabotage(sabotage: Sabotage) -> None:
    catch = hunt(sabotage, Level.IDENTICAL)
    assert catch is not None
    assert catch.by_trace
