"""Which sabotages the suite catches, by what, and how soon.

    $ python -m conformance.selftest.sabotages           # prints the table
    $ python -m conformance.selftest.sabotages --write   # writes docs/sabotages.md

Seeds are fixed, so that a table can be compared with the run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from conformance.lockstep import Judge, Level
from conformance.selftest.sabotage import Sabotage
from conformance.selftest.tables import SABOTAGES
from conformance.shrink import failure_of
from conformance.walk import FailedRun, Tally, walk
from spec.events import StepEvent
from spec.laws import LAW_BY_ID, Violation
from spec.vocabulary import PROFILES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sabotages.md"

MOST_STEPS = {Level.IDENTICAL: 30_000, Level.LAWFUL: 1_000}
"""How long to walk.  What the laws have not noticed by then is a lawful choice, or counts as one."""

TIME_LIMIT_S = 5.0


@dataclass(frozen=True)
class Catch:
    """What noticed a sabotage, after how many sessions and steps; `by_trace` tells that a trace led there."""

    violation: Violation
    sessions: int
    steps: int
    by_trace: bool = False


@cache
def hunt(sabotage: Sabotage, level: Level) -> Catch | None:
    """What the suite says of a sabotaged scheduler; None if it notices nothing."""
    implementation = sabotage.load()
    judge = Judge(PROFILES["vllm-0.8.5"], level, time_limit_s=TIME_LIMIT_S)
    if (shown := sabotage.shown_by()) is not None:
        failure = failure_of(implementation, judge, shown.header.config, shown.events)
        if failure is not None:
            steps = sum(isinstance(event, StepEvent) for event in shown.events[: failure.event_number])
            return Catch(failure.violation, 1, steps, by_trace=True)
    tally = Tally()
    try:
        walk(implementation, judge, f"{sabotage.name}:0", MOST_STEPS[level], tally)
    except FailedRun as failed:
        return Catch(failed.failure.violation, tally.sessions, tally.steps)
    return None


def catchers() -> dict[str, list[str]]:
    """For each law, the sabotages that it is the first to notice where only the laws judge."""
    caught: dict[str, list[str]] = {law: [] for law in LAW_BY_ID}
    for sabotage in SABOTAGES:
        if (catch := hunt(sabotage, Level.LAWFUL)) is not None:
            caught[catch.violation.law].append(sabotage.name)
    return caught


COLUMNS = ("sabotage", "attacks", "caught by", "sessions", "steps", "by the laws alone")


def row(sabotage: Sabotage) -> tuple[str, ...]:
    """One line of the report, under `COLUMNS`."""
    catch, lawful = hunt(sabotage, Level.IDENTICAL), hunt(sabotage, Level.LAWFUL)
    if catch is None:
        return (sabotage.name, sabotage.breaks, "nothing", "", "", _told(lawful))
    sessions = "trace" if catch.by_trace else str(catch.sessions)
    return (sabotage.name, sabotage.breaks, _told(catch), sessions, str(catch.steps), _told(lawful))


def summary() -> str:
    """How many there are, and how many were caught."""
    caught = sum(hunt(sabotage, Level.IDENTICAL) is not None for sabotage in SABOTAGES)
    lawful = sum(hunt(sabotage, Level.LAWFUL) is not None for sabotage in SABOTAGES)
    return f"{len(SABOTAGES)} sabotages: {caught} caught at class identical, {lawful} by the laws alone."


def page() -> str:
    """docs/sabotages.md."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Sabotages"
    yield ""
    yield "Each line is a small change to the reference scheduler that breaks one rule, and what noticed it first."
    yield "`sessions` and `steps` tell how much of a seeded random walk that took, `trace` that a trace shows it."
    yield "The last column is class lawful, where nothing is compared with the spec: a scheduler may break a rule of"
    yield f"vLLM and no law.  It is left empty where the laws notice nothing in {MOST_STEPS[Level.LAWFUL]} steps."
    yield ""
    yield "Written by `python -m conformance.selftest.sabotages --write`."
    yield ""
    yield summary()
    yield ""
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for sabotage in SABOTAGES:
        yield f"| {' | '.join(row(sabotage))} |"


def _told(catch: Catch | None) -> str:
    return "" if catch is None else f"{catch.violation.law}: {catch.violation.signature}"


def main() -> None:
    """Prints the report, or writes the page."""
    console = Console()
    table = Table(*COLUMNS, box=None)
    table.columns[0].no_wrap = True
    for sabotage in track(SABOTAGES, "sabotages", console=Console(stderr=True), transient=True):
        table.add_row(*row(sabotage))
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page())
    else:
        console.print(table)
    console.print(summary())


if __name__ == "__main__":
    main()
