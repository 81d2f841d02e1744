"""What a person sees of `schedspec prove`: the theorems, each failure with its counterexample; and all as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from conformance.proofs import SURVIVED, TRIVIAL, UNTOUCHED, Report
from conformance.report import plain, sentence
from spec.proofs import mutation
from spec.proofs.proving import PROVED, Failure, Obligation
from spec.proofs.theorems import THEOREM_BY_ID, THEOREMS, TOTAL, theorem_of

MOST_IN_FULL = 10
"""Failures that are told with their counterexample; the rest in one line each, for one broken rule breaks many."""
NOTHING = ("0", "False")


def show(console: Console, report: Report) -> bool:
    """Prints the report; tells whether everything holds."""
    console.print(_table(report))
    plain(console, *_bounded(report.obligations))
    for number, failure in enumerate(report.failures):
        plain(console, *(_told(report, failure) if number < MOST_IN_FULL else [_headline(failure)]))
    plain(console, *(f"FAILED {problem}" for problem in report.problems))
    paths = sum(len(each.paths) for each in report.proved)
    plain(console, f"{len(report.obligations)} obligations in {len(report.proved)} cases on {paths} paths")
    if report.failures:
        plain(console, f"{len(report.failures)} of them fail")
    if report.counterexamples:
        met = sum(failure is not None for failure in report.counterexamples.values())
        plain(console, f"{met} of {len(report.counterexamples)} counterexamples found that must be")
    if report.fates:
        plain(console, *_mutants(report))
    bad = report.problems or report.failures
    plain(console, "FAILED" if bad else "ok")
    return not bad


# --- the table -----------------------------------------------------------------------------------


def _table(report: Report) -> Table:
    table = Table(title="theorems about the functions that run")
    for column in ("theorem", "obligations", "verdict", "cost", "of these bounded"):
        table.add_column(column, justify="left" if column in ("theorem", "verdict") else "right")
    for theorem in (*(each.id for each in THEOREMS), TOTAL):
        own = [row for row in report.obligations if row.theorem == theorem]
        if own:
            failed = sum(row.verdict != PROVED for row in own)
            cost, bounded = sum(row.cost for row in own), sum(bool(row.bounded) for row in own)
            verdict = f"{failed} failed" if failed else PROVED
            table.add_row(theorem, str(len(own)), verdict, f"{cost:,}", str(bounded or ""))
    return table


def _bounded(rows: Iterable[Obligation]) -> Iterator[str]:
    """Everything is symbolic but this."""
    count = Counter((row.case, row.bounded) for row in rows if row.bounded)
    for (case, bounded), number in count.items():
        yield f"bounded: {bounded} in {case} ({number} obligations)"


# --- failures ------------------------------------------------------------------------------------


def _headline(failure: Failure) -> str:
    theorem = theorem_of(failure.obligation)
    return f"{failure.verdict.upper()} {theorem} in {failure.case}: {failure.obligation}"


def _told(report: Report, failure: Failure) -> Iterator[str]:
    theorem = theorem_of(failure.obligation)
    paths = next((len(each.paths) for each in report.proved if each.case == failure.case), 0)
    yield _headline(failure)
    if theorem in THEOREM_BY_ID:
        yield f"  theorem: {THEOREM_BY_ID[theorem].says}"
        yield f"  law: {sentence(theorem)}"
    yield f"  fails on {failure.paths} of {paths} paths of the case; the first of them"
    yield f"    logs: {failure.path or 'nothing'}"
    yield from (f"    takes: {decision}" for decision in failure.decisions)
    if failure.verdict == "unknown":
        yield "  the solver did not decide within its resources"
    yield from _values(failure)
    yield from _replay(report, failure)


def _values(failure: Failure) -> Iterator[str]:
    """What the obligation speaks of, what changed, and the rest in one line; what is 0 or no is left out there."""
    values = failure.values
    changed = [name for name, (before, now) in values.items() if before != now and name not in failure.about]
    for heading, names in (("the obligation speaks of", failure.about), ("besides, this changed", changed)):
        if names:
            yield f"  {heading}"
            yield from (f"    {name}: {_pair(values[name])}" for name in names)
    told = {*failure.about, *changed}
    rest = [f"{name} {now}" for name, (_, now) in values.items() if name not in told and now not in NOTHING]
    if rest:
        yield f"  where: {', '.join(rest)}"


def _pair(pair: tuple[str, str]) -> str:
    before, now = pair
    return before if before == now else f"{before} -> {now}"


def _replay(report: Report, failure: Failure) -> Iterator[str]:
    if (failure.case, failure.obligation) in report.written:
        path, breach = report.written[failure.case, failure.obligation]
        yield f"  on the running spec: {breach}"
        yield f"  written to {path}: schedspec replay {path}"


# --- mutants -------------------------------------------------------------------------------------


def _mutants(report: Report) -> Iterator[str]:
    killed = sum(bool(fate.killed_by) for fate in report.fates)
    listed = len(report.fates) - killed
    yield f"{len(report.fates)} mutants: {killed} killed, {listed} survive with a reason (docs/theorems.md)"
    if not report.all_kills:
        yield f"{len(report.kills())} obligations kill in the first case that fails; --json looks at every case"
        return
    idle = Counter(report.idle().values())
    yield f"{len(report.obligations) - idle.total()} obligations kill a mutant, {idle.total()} kill none (--json):"
    yield from (f"  {idle[reason]} {reason}" for reason in (TRIVIAL, UNTOUCHED, SURVIVED) if idle[reason])


# --- JSON ----------------------------------------------------------------------------------------


def as_json(report: Report) -> bytes:
    """Everything: action x obligation x path, verdict, cost, and which mutants each obligation kills.

    A path is told once for its case, by its number.  `kills` is null where no mutant was proved; `idle` says why an
    obligation kills none, where every mutant met every case.
    """
    kills, idle = report.kills(), report.idle()
    told = {
        "obligations": [_row(report, row, kills, idle) for row in report.obligations],
        "paths": {each.case: [path._asdict() for path in each.paths] for each in report.proved},
        "outcomes": {each.case: sorted(map(": ".join, each.outcomes)) for each in report.proved},
        "failures": [
            {**msgspec.to_builtins(failure), "trace": str(report.written[at][0]) if at in report.written else None}
            for failure in report.failures
            for at in [(failure.case, failure.obligation)]
        ],
        "counterexamples": report.counterexamples,
        "mutants": [{"name": fate.mutant.name, "killed_by": fate.killed_by} for fate in report.fates],
        "all_kills": report.all_kills,
        "equivalent": mutation.EQUIVALENT,
        "problems": report.problems,
    }
    return msgspec.json.format(msgspec.json.encode(told), indent=1)


def _row(
    report: Report, row: Obligation, kills: dict[tuple[str, str], list[str]], idle: dict[tuple[str, str], str]
) -> dict[str, Any]:
    at = row.case, row.name
    return {
        "case": row.case,
        "name": row.name,
        "theorem": row.theorem,
        "bounded": row.bounded,
        "verdict": row.verdict,
        "cost": row.cost,
        "paths": [on_path._asdict() for on_path in row.paths],
        "kills": kills.get(at, []) if report.fates else None,
        "idle": idle.get(at),
    }
