"""A campaign: scope after scope, here or in worker processes, until it is done or interrupted.

Scopes do not depend on each other, so a worker takes a whole one.  What is running when Ctrl-C comes is reported as
far as it got; what was not begun is reported as not searched.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing.synchronize import Event

from conformance.exploration import Report, Result, Settings, search, summed
from spec.explore.scope import Scope
from spec.explore.search import INTERRUPTED, Graph

Progress = Callable[[Sequence[Result], Graph | None], None]
"""Told what is finished, and the graph so far of the scope that is being searched here."""


def campaign(
    scopes: Sequence[Scope],
    settings: Settings,
    *,
    workers: int = 1,
    progress: Progress = lambda finished, graph: None,
) -> Report:
    """Searches scopes in order; the report does not depend on the number of workers."""
    results: list[Result] = []
    if workers > 1 and len(scopes) > 1:
        _with_workers(scopes, settings, workers, results, progress)
    else:
        _alone(scopes, settings, results, progress)
    return summed(scopes, results, settings)


def _alone(scopes: Sequence[Scope], settings: Settings, results: list[Result], progress: Progress) -> None:
    try:
        for scope in scopes:
            results.append(search(scope, settings, partial(progress, results)))
            progress(results, None)
            if results[-1].searched.stopped == INTERRUPTED:
                return
    except KeyboardInterrupt:
        return


def _with_workers(
    scopes: Sequence[Scope], settings: Settings, workers: int, results: list[Result], progress: Progress
) -> None:
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    with ProcessPoolExecutor(workers, context, _begin, (stop,)) as pool:
        running = [pool.submit(_search, scope, settings) for scope in scopes]
        try:
            for future in running:
                if (result := future.result()) is not None:
                    results.append(result)
                    progress(results, None)
        except KeyboardInterrupt:
            stop.set()
            handed_out = [future for future in running[len(results) :] if not future.cancel()]
            results.extend(result for future in handed_out if (result := future.result()) is not None)


# --- in a worker ---------------------------------------------------------------------------------

_STOP: Event


def _begin(stop: Event) -> None:
    """Ctrl-C reaches a worker as well; the campaign tells it when to stop."""
    global _STOP
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _STOP = stop


def _search(scope: Scope, settings: Settings) -> Result | None:
    """None for a scope that was handed out, but not begun when the campaign was stopped."""
    return None if _STOP.is_set() else search(scope, settings, _stop_if_told)


def _stop_if_told(graph: Graph) -> None:
    if _STOP.is_set():
        raise KeyboardInterrupt
