"""docs/exploration.md: what is searched, why it is sound, what was found.

Figures come from a search, none from a clock.
"""

from __future__ import annotations

from collections.abc import Iterator

from conformance.exploration import told
from spec.cross_check.cores import COMPARED
from spec.explore.family import BLOCK_SIZES, BLOCKS, FEATURES, REQUESTS, family
from spec.explore.liveness import find_stuck
from spec.explore.scope import Scope
from spec.explore.scopes import COMMITTED, DROPPED
from spec.explore.search import explore
from spec.explore.unreached import UNREACHED
from spec.outcomes import OUTCOMES

INTRODUCTION = """# Every small state

`schedspec explore` searches small scopes breadth first: every state that the spec can reach, every law in every state
and on every transition. It is the spec that runs as the oracle, and what can happen next comes from the table that
random runs draw from (`spec/moves.py`). A breach is written as the shortest run that leads to it.

    schedspec explore                       # everything: about a minute
    schedspec explore hits 'drafts-3x*'     # some scopes, by name
    schedspec explore --workers 2 --report exploration.json

Ctrl-C stops and reports what was searched; so does `--limit`, which bounds memory: a state takes some 2 KB.
"""

SOUNDNESS = """
## What is a state

A state is a value (`spec/explore/canonical.py`) that holds all that the spec and the laws read: queues, tables, the
free queue in its order, keys and who holds them, what each block holds. Two worlds with equal values go on alike.
Values are equal *up to renaming*: nothing in the spec compares block ids, and nothing but its id tells a request from
its twin, so blocks are numbered in the order of tables and free queue, twins in the order of the queues. The tests
search without renaming too, and compare: every plain state and edge, renamed, is one of the renamed graph, and the
other way round; bugs seeded into the spec are found in the same number of moves.

Behind every move each count that the spec keeps is counted again (`spec/recount.py`); one that is off is a breach too,
SPEC.

Two things are history and no state. How long the first in line waited (STARVE) is decided on the graph instead. What a
key named *before* (KEY) is known only while some block carries it; what is hit later is judged by CONTENT.

## Liveness

Known tokens never become fewer, so in a cycle nobody samples anything. Whoever is live all the way round a reachable
cycle that has a step in it, and waits for no grammar, starves. Where the premises of PROGRESS hold there is no such
cycle. Where one is dropped there must be one, or the search fails:
"""

CORPUS = """
## The corpus

`conformance/traces/corpus` has runs that take every edge of every committed scope, found greedily: always on to the
nearest edge that no run took yet.

    pytest conformance/ -m corpus --impl my_port.scheduler:make

replays them in seconds, without Hypothesis. How many runs of a scope show a known deviation is written down beside
them, and must stay so.
"""

OUTSIDE = """
## An outside check

The counting core (no prefix caching; requests as counts, blocks with ids) is written a second time in Promela.
`make cross-check` needs the packages `spin` and `gcc` and compares: SPIN finds exactly the states and transitions
that the explorer finds without renaming. `python spec/benchmarks/explore.py` prints the times of both.
"""


def page() -> str:
    return "".join(_parts())


def _parts() -> Iterator[str]:
    yield INTRODUCTION
    yield "\n## The committed scopes\n\n"
    yield "Up to renaming; *far* is the number of moves to the farthest state.\n\n"
    yield "| scope | what happens | states | transitions | far |\n|---|---|---|---|---|\n"
    reached: set[tuple[str, str]] = set()
    for scope in COMMITTED:
        graph = explore(scope)
        reached |= graph.rows.keys()
        yield f"| {scope.name} | {scope.about} | {len(graph.values)} | {graph.transitions} | {graph.depth} |\n"
    yield f"\nThey take {len(reached)} of the {len(OUTCOMES)} outcomes that micro-steps can have. Not reached: "
    yield "; ".join(f"{action}: {outcome} ({why})" for (action, outcome), why in UNREACHED.items()) or "none"
    yield f".\n\nThe *family* is a grid of {len(list(family()))} scopes more: {_span(REQUESTS)} requests, "
    yield f"{_span(BLOCKS)} blocks of {_span(BLOCK_SIZES)} tokens, each with every feature that fits: "
    yield f"{', '.join(FEATURES)}. Priorities are no part of the profile vllm-0.8.5.\n"
    yield SOUNDNESS
    yield "\n| dropped premise | scope | who is stuck, and how |\n|---|---|---|\n"
    for dropped in DROPPED:
        graph = explore(dropped.scope)
        stuck = find_stuck(graph)
        yield f"| {dropped.premise} | {dropped.scope.name} | {told(graph, stuck) if stuck else 'nobody'} |\n"
    yield CORPUS
    yield OUTSIDE
    yield "\n| core | size | states | transitions | up to renaming |\n|---|---|---|---|---|\n"
    for scope in COMPARED:
        yield _core(scope)


def _core(scope: Scope) -> str:
    plain, renamed = explore(scope, rename=False), explore(scope)
    sizes = f"{len(plain.values)} | {plain.transitions} | {len(renamed.values)} states"
    return f"| {scope.name} | {scope.about} | {sizes} |\n"


def _span(values: tuple[int, ...]) -> str:
    return f"{values[0]} to {values[-1]}"
