"""What a person reads at the terminal: failures with both sides, summaries, the table of laws."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Console
from rich.table import Table

from conformance.arrivals import Arrival
from conformance.lockstep import Failure, Judge
from conformance.protocol import Implementation
from conformance.walk import Tally
from conformance.workload import FailedWorkload, Summary
from spec import recount
from spec.laws import LAW_BY_ID, LAWS
from spec.rules import RULE_BY_ID

MOST_ROWS = 12
"""Rows of a workload that are shown with a failure."""


def sentence(law_or_rule: str) -> str:
    """The sentence behind an id, empty for one that is neither a law nor a rule."""
    if law_or_rule == recount.ID:
        return recount.SENTENCE
    found = LAW_BY_ID.get(law_or_rule) or RULE_BY_ID.get(law_or_rule)
    return found.sentence if found else ""


def plain(console: Console, *lines: str) -> None:
    """Lines as they are: no markup, no highlighting, nothing broken at the width of the terminal.

    What the terminal cannot show is escaped: an implementation may put anything into its messages.
    """
    for line in lines:
        shown = line.encode(console.encoding, "backslashreplace").decode(console.encoding)
        console.print(shown, markup=False, highlight=False, soft_wrap=True)


def show_failure(console: Console, failure: Failure, where: str) -> None:
    """The law or rule that broke first, where it did, and the last step of both sides."""
    law, signature, message = failure.violation
    console.print(f"[bold red]FAILED[/] [bold]{law}[/] in ", end="")
    plain(console, where, f"  {sentence(law)}", f"  {signature}: {message}")
    plain(console, *(f"  {line}" for line in failure.sides.splitlines()))


def show_failed_workload(console: Console, failed: FailedWorkload) -> None:
    """The failure, the rows of the trace that it names, and what went well before."""
    show_failure(console, failed.failure, f"step {failed.summary.steps + 1}")
    if failed.rows:
        plain(console, "rows of the trace:", *_row_lines(failed.rows))
    show_summary(console, failed.summary, "before that")


def _row_lines(rows: Iterable[Arrival]) -> Iterable[str]:
    for count, row in enumerate(rows):
        if count == MOST_ROWS:
            yield "  ..."
            return
        shares = "" if row.hash_ids is None else f", hash ids {list(row.hash_ids[:4])}{'...' * (len(row.hash_ids) > 4)}"
        lengths = f"{row.prompt_tokens} prompt tokens, {row.output_tokens} output tokens"
        yield f"  line {row.line} at {row.at_ms:.0f} ms: {lengths}{shares}"


def show_summary(console: Console, summary: Summary, title: str) -> None:
    """What a workload did, and who took the time."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, show_header=False)
    table.add_column(justify="right")
    table.add_column()
    total = sum(summary.seconds.values())
    shares = ", ".join(f"{side} {seconds:.1f} s" for side, seconds in sorted(summary.seconds.items()))
    for count, what in (
        (summary.requests, f"requests, {summary.clipped} of them clipped, {summary.most_live} live at most"),
        (summary.steps, f"steps, {summary.most_running} requests running at most"),
        (summary.tokens, "tokens scheduled"),
        (summary.preemptions, "preemptions"),
        (summary.hits, f"prefix hits, {summary.hit_tokens:,} tokens"),
    ):
        table.add_row(f"{count:,}", what)
    if summary.given_up:
        table.add_row(f"{summary.given_up:,}", f"requests given up at known deviations, {summary.sessions} sessions")
    table.add_row(f"{total:.1f}", f"seconds: {shares}")
    console.print(table)
    show_deviations(console, summary.shown)


def show_tally(console: Console, tally: Tally) -> None:
    plain(console, f"{tally.sessions:,} sessions, {tally.steps:,} steps, {tally.events:,} events")
    show_deviations(console, tally.shown)


def show_deviations(console: Console, shown: Mapping[str, int]) -> None:
    plain(console, *(f"known deviation {name}: shown {count} times" for name, count in sorted(shown.items())))


def show_implementation(console: Console, implementation: Implementation, judge: Judge) -> None:
    plain(console, f"under test: {implementation.name}, profile {judge.profile.name}, class {judge.level}")
    plain(console, *(f"  {line}" for line in implementation.header))


def laws_table() -> Table:
    table = Table(box=box.SIMPLE)
    table.add_column("law", style="bold", no_wrap=True)
    table.add_column("sentence")
    for law in LAWS:
        table.add_row(law.id, law.sentence)
    return table
