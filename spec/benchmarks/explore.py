"""What exhaustive search costs: SPIN, and the explorer without and with renaming, on the same cores in one run.

    $ python spec/benchmarks/explore.py

All three come to the same verdict: no assertion fails, no law breaks.  The explorer checks every law and runs the
spec itself; SPIN runs the counting core in C and asserts four of the laws.  Seconds of SPIN are those of its
search, then those with generating and compiling it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from spec.cross_check.cores import COMPARED, LARGE
from spec.cross_check.spin import NoSpin, count
from spec.explore.scope import Scope
from spec.explore.search import explore

COLUMNS = ("core", "by", "states", "transitions", "seconds", "states/s", "verdict")
ROW = "{:8} {:18} {:>9} {:>11} {:>15} {:>9}  {}"


def rows(scope: Scope, limit: int) -> Iterator[tuple[str, ...]]:
    """One line for each searcher, then how much sooner the explorer with renaming is done than SPIN."""
    searching = built = None
    try:
        spin = count(scope)
        searching, built = spin.seconds, spin.seconds + spin.seconds_to_build
        seconds = f"{searching:.2f} ({built:.2f})"
        verdict = "holds" if not spin.errors else f"{spin.errors} errors"
        yield _row(scope.name, "SPIN", spin.states, spin.transitions, seconds, searching, verdict)
    except NoSpin as problem:
        yield scope.name, "SPIN", "", "", "", "", str(problem)
    for by, rename in (("without renaming", False), ("with renaming", True)):
        start = time.perf_counter()
        graph = explore(scope, rename=rename, limit=limit)
        took = time.perf_counter() - start
        verdict = f"not complete: {graph.stopped}" if graph.stopped else "breach" if graph.breach else "holds"
        if rename and searching is not None and built is not None:
            verdict += f", {searching / took:.1f} ({built / took:.1f}) times faster than SPIN"
        yield _row("", by, len(graph.values), graph.transitions, f"{took:.3f}", took, verdict)


def _row(name: str, by: str, states: int, transitions: int, seconds: str, took: float, verdict: str) -> tuple[str, ...]:
    return name, by, str(states), str(transitions), seconds, f"{states / took:.0f}", verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=20_000, help="states after which the explorer gives up")
    limit = parser.parse_args().limit
    print(ROW.format(*COLUMNS))
    for scope in (*COMPARED, *LARGE):
        for row in rows(scope, limit):
            print(ROW.format(*row), flush=True)


if __name__ == "__main__":
    main()
