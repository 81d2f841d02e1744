"""What `schedspec prove` does: proves, breaks things to see the proofs notice, and writes what fails as runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from conformance import trace
from conformance.lockstep import Level
from spec.proofs import counterexamples, lemmas, mutation, traces
from spec.proofs.mutation import Until
from spec.proofs.proving import Failure, Obligation, Proved, chosen, of_theorem, prove_all, silent_invariants, unreached
from spec.proofs.reaching import Run
from spec.proofs.theorems import THEOREM_BY_ID

Bar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]

TRIVIAL = "true as it stands"
UNTOUCHED = "no mutant is in what its case runs"
SURVIVED = "every mutant in what its case runs leaves it true"


@dataclass
class Report:
    """All that was asked, and what is wrong.

    written    the trace of a failure, by case and obligation, and what breaks in it
    all_kills  whether mutants were proved in every case, or up to the first that fails
    """

    proved: list[Proved]
    problems: list[str] = field(default_factory=list)
    counterexamples: dict[str, Failure | None] = field(default_factory=dict)
    fates: list[mutation.Fate] = field(default_factory=list)
    all_kills: bool = False
    written: dict[tuple[str, str], tuple[Path, str]] = field(default_factory=dict)

    @property
    def obligations(self) -> list[Obligation]:
        return [row for each in self.proved for row in each.obligations]

    @property
    def failures(self) -> list[Failure]:
        return [failure for each in self.proved for failure in each.failures]

    def kills(self) -> dict[tuple[str, str], list[str]]:
        """Which mutants each obligation kills, by case and obligation."""
        found: dict[tuple[str, str], list[str]] = {}
        for fate in self.fates:
            for case, names in fate.killed_by.items():
                for name in names:
                    found.setdefault((case, name), []).append(fate.mutant.name)
        return found

    def idle(self) -> dict[tuple[str, str], str]:
        """The obligations that kill no mutant, and why; only told where every mutant met every case."""
        if not self.all_kills:
            return {}
        killing, tried = self.kills(), {case for fate in self.fates for case in fate.tried}
        return {
            (row.case, row.name): TRIVIAL if row.trivial else SURVIVED if row.case in tried else UNTOUCHED
            for row in self.obligations
            if (row.case, row.name) not in killing
        }


def known(only: str) -> bool:
    """Whether there is a theorem or an action of that name."""
    return bool(chosen(only))


def run(bar: Bar, only: str, with_mutants: bool, all_kills: bool, failures: Path) -> Report:
    """Proves, then breaks things.  Runs of counterexamples are written to `failures`; raises OSError where they cannot.

    `only` a theorem or an action: its obligations alone.
    """
    cases = chosen(only)
    with bar("obligations", len(cases)) as done:
        proved = prove_all(cases, _count(done))
    if only in THEOREM_BY_ID:
        proved = of_theorem(proved, only)
    report = Report(proved, all_kills=with_mutants and all_kills)
    report.problems += [f"{each.case}: no input takes the path {path}" for each in proved for path in each.vacuous]
    report.written = _written(report.failures, failures)
    if not only:
        report.problems += _silent() + [f"no path of any case comes to {outcome}" for outcome in unreached(proved)]
        _counterexamples(report, failures)
        if with_mutants:
            _mutants(bar, report, all_kills)
    return report


def _count(done: Callable[[int], None]) -> Callable[[], None]:
    counter = iter(range(1, 1_000_000))
    return lambda: done(next(counter))


def _silent() -> list[str]:
    """What is assumed without saying anything, or without being proved."""
    return [
        *(f"invariant that says nothing: {name}" for name in silent_invariants()),
        *(f"lemma {each.name} is not proved" for each in lemmas.LEMMAS if lemmas.refuted(each) is not False),
        *(f"wrong lemma unnoticed: {each.sentence}" for each in lemmas.BROKEN if not lemmas.refuted(each)),
    ]


# --- runs ----------------------------------------------------------------------------------------


def _written(failed: Iterable[Failure], directory: Path) -> dict[tuple[str, str], tuple[Path, str]]:
    """Traces of what fails: replaying one compares the spec as it is with the implementation."""
    found = {}
    for failure in failed:
        if (shown := traces.run_of_failure(failure)) is not None:
            run, breach = shown
            path = _write(directory, _slug(f"{failure.case} {failure.obligation}"), run, breach, Level.IDENTICAL)
            found[failure.case, failure.obligation] = path, breach
    return found


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _write(directory: Path, name: str, run: Run, note: str, level: Level) -> Path:
    path = directory / f"{name}.jsonl"
    header = trace.Header(trace.SCHEMA_VERSION, name, traces.PROFILE, run.config, level, note)
    trace.write(path, header, run.events)
    return path


def _counterexamples(report: Report, failures: Path) -> None:
    """Finds what must be found; what can be replayed must break a law on the running spec, and is written."""
    report.counterexamples = counterexamples.find_all()
    report.problems += [
        f"counterexample not found: {name}" for name, found in report.counterexamples.items() if found is None
    ]
    for each in traces.RUNS:
        if (failure := report.counterexamples[each.expected.name]) is not None:
            run = each.build(failure)
            if breach := traces.replay(run, each.broken(run.config)):
                _write(failures, run.name, run, f"{each.expected.name}: {breach}", Level.LAWFUL)
            else:
                report.problems.append(f"counterexample does not show on the running spec: {each.expected.name}")


def _mutants(bar: Bar, report: Report, all_kills: bool) -> None:
    with bar("mutants", len(mutation.mutants())) as done:
        report.fates = mutation.run(report.proved, _count(done), until=Until.END if all_kills else Until.CASE)
    for fate in report.fates:
        listed = fate.mutant.name in mutation.EQUIVALENT
        if bool(fate.killed_by) == listed:
            report.problems.append(f"mutant {'killed but listed' if listed else 'survives'}: {fate.mutant.name}")
        if fate.unknown:
            report.problems.append(f"mutant unknown: {fate.mutant.name}")
