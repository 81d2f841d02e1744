"""The corpus: runs that take every edge of every committed scope, as traces.

    $ python -m conformance.corpus

writes them anew into `traces/corpus`, a file for each scope; the tests compare.  A trace has an id made of its scope
and its content.  Replaying them needs neither Hypothesis nor a search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

from conformance import trace
from conformance.record import spec_plans
from spec.explore.cover import cover
from spec.explore.runs import run_of
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED
from spec.explore.search import explore

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


def main() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    found = files()
    for stale in DIRECTORY.glob("*.jsonl"):
        if stale.name not in found:
            stale.unlink()
    for name, content in found.items():
        (DIRECTORY / name).write_bytes(content)


if __name__ == "__main__":
    main()
