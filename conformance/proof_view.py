"""`schedspec prove`: the proofs run, as a table, as JSON, and as traces."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from conformance import trace
from conformance.lockstep import Level
from conformance.report import plain
from spec.proofs import counterexamples, lemmas, mutation, traces
from spec.proofs.proving import Failure, Proved, chosen, of_theorem, prove_all, silent_invariants
from spec.proofs.theorems import THEOREM_BY_ID, THEOREMS, TOTAL

Bar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@dataclass
class Report:
    """All that was asked, and what is wrong."""

    proved: list[Proved]
    fates: list[mutation.Fate]
    problems: list[str]
    counterexamples: dict[str, Failure | None]

    @property
    def kills(self) -> dict[tuple[str, str], list[str]]:
        """Which mutants each obligation kills."""
        found: dict[tuple[str, str], list[str]] = {}
        for fate in self.fates:
            for case, names in fate.killed_by.items():
                for name in names:
                    found.setdefault((case, name), []).append(fate.mutant.name)
        return found


def known(only: str) -> bool:
    """Whether there is a theorem or an action of that name."""
    return bool(chosen(only))


def run(bar: Bar, only: str, with_mutants: bool, failures: Path) -> Report:
    """Proves; then breaks things, to see the proofs notice.  Runs of counterexamples are written to `failures`."""
    cases = chosen(only)
    with bar("obligations", len(cases)) as done:
        proved = prove_all(cases, _count(done))
    if only in THEOREM_BY_ID:
        proved = of_theorem(proved, only)
    problems = [f"{each.case}: no input takes the path {path}" for each in proved for path in each.vacuous]
    found: dict[str, Failure | None] = {}
    fates: list[mutation.Fate] = []
    if not only:
        problems += [f"invariant that says nothing: {name}" for name in silent_invariants()]
        problems += [f"lemma {each.name} is not proved" for each in lemmas.LEMMAS if lemmas.refuted(each) is not False]
        problems += [f"wrong lemma unnoticed: {each.sentence}" for each in lemmas.BROKEN if not lemmas.refuted(each)]
        found = _counterexamples(problems, failures)
        if with_mutants:
            fates = _mutants(bar, proved, problems)
    return Report(proved, fates, problems, found)


def _count(done: Callable[[int], None]) -> Callable[[], None]:
    counter = iter(range(1, 1_000_000))
    return lambda: done(next(counter))


def _counterexamples(problems: list[str], failures: Path) -> dict[str, Failure | None]:
    found = {each.name: counterexamples.find(each) for each in counterexamples.EXPECTED}
    problems += [f"counterexample not found: {name}" for name, failure in found.items() if failure is None]
    for expected, _ in traces.RUNS:
        run = traces.run_of(expected)
        if run is None or not traces.replay(run, traces.broken_scheduler(expected)(run.config)):
            problems.append(f"counterexample does not show on the running spec: {expected.name}")
            continue
        header = trace.Header(trace.SCHEMA_VERSION, run.name, traces.PROFILE, run.config, Level.LAWFUL, expected.name)
        trace.write(failures / f"{run.name}.jsonl", header, run.events)
    return found


def _mutants(bar: Bar, proved: list[Proved], problems: list[str]) -> list[mutation.Fate]:
    with bar("mutants", len(mutation.mutants())) as done:
        fates = mutation.run(proved, _count(done))
    for fate in fates:
        listed = fate.mutant.name in mutation.EQUIVALENT
        if bool(fate.killed_by) == listed:
            problems.append(f"mutant {'killed but listed' if listed else 'survives'}: {fate.mutant.name}")
        if fate.unknown:
            problems.append(f"mutant unknown: {fate.mutant.name}")
    return fates


# --- showing -------------------------------------------------------------------------------------


def show(console: Console, report: Report) -> bool:
    """Prints the report; tells whether everything holds."""
    console.print(_table(report))
    for failure in [failure for each in report.proved for failure in each.failures]:
        _show_failure(console, failure)
    for problem in report.problems:
        plain(console, f"FAILED {problem}")
    paths = sum(each.paths for each in report.proved)
    rows = [row for each in report.proved for row in each.obligations]
    plain(console, f"{len(rows)} obligations in {len(report.proved)} cases on {paths} paths")
    if report.counterexamples:
        met = sum(failure is not None for failure in report.counterexamples.values())
        plain(console, f"{met} of {len(report.counterexamples)} counterexamples found that must be")
    if report.fates:
        _show_mutants(console, report)
    bad = report.problems or any(each.failures for each in report.proved)
    plain(console, "FAILED" if bad else "ok")
    return not bad


def _show_mutants(console: Console, report: Report) -> None:
    killed = sum(bool(fate.killed_by) for fate in report.fates)
    listed = len(report.fates) - killed
    plain(console, f"{len(report.fates)} mutants: {killed} killed, {listed} survive with a reason (docs/theorems.md)")
    idle = {(row.case, row.name) for each in report.proved for row in each.obligations} - set(report.kills)
    plain(console, f"{len(idle)} obligations were not the first to kill any mutant (--json lists them)")


def _table(report: Report) -> Table:
    table = Table(title="theorems about the functions that run")
    for column, justify in (("theorem", "left"), ("obligations", "right"), ("verdict", "left"), ("cost", "right")):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    rows = [row for each in report.proved for row in each.obligations]
    for theorem in (*(each.id for each in THEOREMS), TOTAL):
        own = [row for row in rows if row.theorem == theorem]
        if own:
            failed = [row for row in own if row.verdict != "proved"]
            verdict = "proved" if not failed else f"{len(failed)} failed"
            table.add_row(theorem, str(len(own)), verdict, f"{sum(row.cost for row in own):,}")
    return table


def _show_failure(console: Console, failure: Failure) -> None:
    plain(console, f"{failure.verdict.upper()} {failure.case}: {failure.obligation}")
    plain(console, f"  path: {failure.path or '(logs nothing)'}")
    for name, (before, after) in failure.values.items():
        plain(console, f"  {name}: {before}" + ("" if before == after else f" -> {after}"))


def as_json(report: Report) -> bytes:
    """Everything: action x obligation, verdict, cost, paths, and which mutants each obligation killed."""
    kills = report.kills
    rows: list[dict[str, Any]] = [
        {**msgspec.to_builtins(row), "kills": kills.get((row.case, row.name), [])}
        for each in report.proved
        for row in each.obligations
    ]
    told = {
        "obligations": rows,
        "failures": [failure for each in report.proved for failure in each.failures],
        "outcomes": {each.case: sorted(map(": ".join, each.outcomes)) for each in report.proved},
        "counterexamples": report.counterexamples,
        "mutants": [{"name": fate.mutant.name, "killed_by": fate.killed_by} for fate in report.fates],
        "equivalent": mutation.EQUIVALENT,
        "problems": report.problems,
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=1)
