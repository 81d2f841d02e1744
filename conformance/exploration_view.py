"""What a person sees of a campaign: a bar while it runs, then what was reached, and what was not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from conformance.exploration import Report, Searched
from conformance.report import plain
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED
from spec.explore.search import Graph

SINGLE = {scope.name for scope in COMMITTED} | {dropped.scope.name for dropped in DROPPED}
"""Scopes with a line of their own; those of the family share one for each feature."""

COLUMNS = ("scope", "scopes", "states", "transitions", "depth", "seconds", "transitions/s")


@contextmanager
def bar(scopes: list[Scope]) -> Iterator[Callable[[int, float, Graph], None]]:
    """A bar over the scopes, with states, transitions, rate and depth of the one that is searched."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[name]:24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(scopes), name="", told="")

        def show(number: int, since: float, graph: Graph) -> None:
            rate = graph.transitions / max(time.perf_counter() - since, 1e-9)
            told = f"{len(graph.values)} states, {graph.transitions} transitions, {rate:.0f}/s, depth {graph.depth}"
            progress.update(task, completed=number, name=graph.scope.name, told=told)

        yield show


def show(console: Console, report: Report) -> None:
    """The whole report."""
    console.print(_table(report.searched))
    for each in report.searched:
        if each.premise:
            plain(console, f"dropped premise, {each.premise}: {each.name}", f"  {each.stuck or 'NOBODY IS STUCK'}")
        elif each.breach or each.stuck:
            plain(console, f"FAILED {each.name}: {each.breach or each.stuck}", f"  written to {each.trace}")
        if each.stopped:
            plain(console, f"not complete: {each.name}: {each.stopped}")
    if report.not_searched:
        plain(console, f"not searched: {len(report.not_searched)} scopes, from {report.not_searched[0]} on")
    plain(console, f"outcomes never reached: {', '.join(report.never) or 'none, every row was taken'}")
    plain(console, f"laws never at stake: {', '.join(report.laws_never_at_stake) or 'none'}")
    states, transitions = sum(s.states for s in report.searched), sum(s.transitions for s in report.searched)
    failed = sum(each.failed for each in report.searched)
    verdict = f"{failed} scopes FAILED" if failed else "every law holds in every state"
    extent = "complete" if report.complete else "NOT complete"
    plain(console, f"{len(report.searched)} scopes, {states} states, {transitions} transitions, {extent}: {verdict}")


def _table(searched: Iterable[Searched]) -> Table:
    table = Table(*COLUMNS, box=box.SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, found in groupby(searched, _line_of):
        group = list(found)
        seconds = sum(each.seconds for each in group)
        transitions = sum(each.transitions for each in group)
        table.add_row(
            name,
            str(len(group)),
            str(sum(each.states for each in group)),
            str(transitions),
            str(max(each.depth for each in group)),
            f"{seconds:.2f}",
            f"{transitions / max(seconds, 1e-9):.0f}",
        )
    return table


def _line_of(each: Searched) -> str:
    if each.name in SINGLE:
        return each.name
    requests = each.name.rpartition("-")[2].partition("x")[0]
    return f"family, {requests} requests"
