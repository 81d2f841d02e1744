"""The corpus: runs that take every edge of every committed scope, as traces.

    $ python -m conformance.corpus

writes them anew into `traces/corpus`, a file for each scope; the tests compare.  A trace has an id made of its scope
and its content.  Replaying them needs neither Hypothesis nor a search, so that how many runs show a known deviation
is known too:

    $ python -m conformance.corpus --impl vllm

writes that down, and a release that shows it more or less often fails.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from conformance import deviations, trace
from conformance.lockstep import Judge, Session
from conformance.protocol import Implementation, load
from conformance.record import spec_plans
from conformance.replay import replay
from spec.explore.cover import cover
from spec.explore.runs import run_of
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED
from spec.explore.search import explore
from spec.vocabulary import PROFILES

DEFAULT_PROFILE = "vllm-0.8.5"

DIRECTORY = Path(__file__).parent / "traces" / "corpus"


def files() -> Mapping[str, bytes]:
    """Name and content of every file."""
    return {f"{scope.name}.jsonl": b"".join(_traces(scope)) for scope in COMMITTED}


@cache
def _traces(scope: Scope) -> tuple[bytes, ...]:
    return tuple(_generate(scope))


def _generate(scope: Scope) -> Iterator[bytes]:
    graph = explore(scope)
    if graph.breach is not None or graph.stopped:
        raise ValueError(f"{scope.name}: no graph to cover: {graph.breach or graph.stopped}")
    unnamed = trace.Header(trace.SCHEMA_VERSION, "", scope.profile.name, scope.config)
    for moves in cover(graph):
        events = run_of(scope, moves)
        plans = spec_plans(scope.profile, scope.config, events)
        digest = hashlib.sha256(trace.encode(unnamed, events, plans)).hexdigest()[:8]
        header = msgspec.structs.replace(unnamed, id=f"{scope.name}-{digest}")
        yield trace.encode(header, events, plans)


# --- known deviations ----------------------------------------------------------------------------

Shown = Mapping[str, int]
"""Of each known deviation that shows in the runs of a scope, in how many."""


def run_all(implementation: Implementation, judge: Judge, path: Path) -> tuple[list[Session], Shown]:
    """Replays every run of a file.  Raises Unsupported before the first, and Failure."""
    sessions = [replay(implementation, judge, each) for each in trace.read_all(path)]
    return sessions, Counter(deviation for session in sessions for deviation in session.shown)


def expected(name: str | None) -> Mapping[str, Shown] | None:
    """What is known to show, by scope; None if nothing was written down for these deviations."""
    path = DIRECTORY / f"{name}.toml"
    return tomllib.loads(path.read_text()) if path.exists() else None


def write_expected(implementation: Implementation) -> None:
    """Writes down what shows, for the deviations of an implementation; refuses one that has none."""
    known = deviations.load(implementation.deviations)
    if not known.entries:
        raise SystemExit(f"{implementation.name} has no known deviations")
    judge = Judge(PROFILES[DEFAULT_PROFILE], known=known)
    lines = ["# Of each known deviation, in how many runs of a scope it shows."]
    for path in sorted(DIRECTORY.glob("*.jsonl")):
        shown = run_all(implementation, judge, path)[1]
        lines += ["", f"[{path.stem}]", *(f"{deviation} = {shown[deviation]}" for deviation in sorted(shown))]
    (DIRECTORY / f"{known.name}.toml").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Writes the corpus, or what it shows of an implementation."""
    if "--impl" in sys.argv[1:]:
        write_expected(load(sys.argv[-1]))
        return
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    found = files()
    for stale in DIRECTORY.glob("*.jsonl"):
        if stale.name not in found:
            stale.unlink()
    for name, content in found.items():
        (DIRECTORY / name).write_bytes(content)


if __name__ == "__main__":
    main()
