"""What a person sees of a campaign: a bar while it runs, then what was reached, and what was not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from conformance.campaign import Progress
from conformance.exploration import Report, Result, Searched
from conformance.report import plain
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED
from spec.explore.search import Graph

SINGLE = {scope.name for scope in COMMITTED} | {dropped.scope.name for dropped in DROPPED}
"""Scopes with a line of their own; those of the family share one for each feature."""

COLUMNS = ("scope", "scopes", "states", "transitions", "depth", "seconds", "per second")


@contextmanager
def bar(scopes: list[Scope]) -> Iterator[Progress]:
    """A bar over the scopes, with states, transitions and rate of all, and the depth of the last."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[name]:24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[told]}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("", total=len(scopes), name="", told="")

        start = time.perf_counter()

        def show(finished: Sequence[Result], graph: Graph | None) -> None:
            graphs = [result.searched for result in finished]
            states = sum(each.states for each in graphs) + (len(graph.values) if graph else 0)
            transitions = sum(each.transitions for each in graphs) + (graph.transitions if graph else 0)
            depth = graph.depth if graph else graphs[-1].depth
            name = graph.scope.name if graph else graphs[-1].name
            rate = transitions / (time.perf_counter() - start)
            told = f"{states} states, {transitions} transitions, {rate:.0f}/s, depth {depth}"
            shown.update(task, completed=len(finished), name=name, told=told)

        yield show


def show(console: Console, report: Report) -> None:
    """The whole report."""
    console.print(_table(report.searched))
    for each in report.searched:
        if each.premise:
            plain(console, f"dropped premise, {each.premise}: {each.name}", f"  {each.stuck or 'NOBODY IS STUCK'}")
        elif each.breach or each.stuck:
            plain(console, f"FAILED {each.name}: {each.breach or each.stuck}")
            plain(console, *([f"  after {each.way}"] if each.way else []), f"  written to {each.trace}")
        if each.stopped:
            plain(console, f"not complete: {each.name}: {each.stopped}")
    if report.not_searched:
        plain(console, f"not searched: {len(report.not_searched)} scopes, from {report.not_searched[0]} on")
    plain(console, f"outcomes never reached: {', '.join(report.never) or 'none, every row was taken'}")
    plain(console, f"laws never at stake: {', '.join(report.laws_never_at_stake) or 'none'}")
    states, transitions = sum(s.states for s in report.searched), sum(s.transitions for s in report.searched)
    failed = sum(each.failed for each in report.searched)
    verdict = f"{failed} scopes FAILED" if failed else "no law breaks"
    extent = "every state" if report.complete else "NOT every state"
    plain(
        console,
        f"{len(report.searched)} scopes, {states} states, {transitions} transitions, {extent} was searched: {verdict}",
    )


def _table(searched: Iterable[Searched]) -> Table:
    table = Table(*COLUMNS, box=box.SIMPLE)
    table.columns[0].no_wrap = True
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
