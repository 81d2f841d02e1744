"""The theorems: what each says, and which obligations it rests on.

An obligation is a goal of a case, on all its paths.  Its name opens with the law that it serves.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from spec.laws import LAW_BY_ID
from spec.proofs.cases import (
    admitting,
    allocating,
    answering,
    arithmetic,
    beginning,
    encoding,
    policing,
    pooling,
    progress,
    stepping,
    visiting,
)
from spec.proofs.cases.case import Case

CASES: tuple[Case, ...] = (
    *arithmetic.CASES,
    *beginning.CASES,
    *pooling.CASES,
    *allocating.CASES,
    *visiting.CASES,
    *admitting.CASES,
    *answering.CASES,
    *encoding.CASES,
    *stepping.CASES,
    *progress.CASES,
    *policing.CASES,
)
"""Everything that is proved."""

TOTAL = "TOTAL"
"""No law but what makes every other proof one: no action raises, divides by zero or reads outside of a container."""


class Theorem(NamedTuple):
    """A law of the spec, proved of the spec's actions."""

    id: str
    says: str


THEOREMS: tuple[Theorem, ...] = (
    Theorem(
        "BUDGET", "What is left of the budget and what was granted is the budget, at every grant; no grant is empty."
    ),
    Theorem("SEATS", "No admission makes more requests run than there are seats, or more adapters than the cap."),
    Theorem("LENGTH", "No position beyond the model length is computed, no table grows beyond it."),
    Theorem("POOL", "The free queue never runs dry under an allocation; it is accepted exactly if it fits."),
    Theorem("COUNT", "References are occurrences in tables; a block is free if and only if nobody refers to it."),
    Theorem("ATOMIC", "What an action does not name stays; a refused one changes nothing."),
    Theorem("COVER", "Every scheduled position, and the lookahead, has a slot; no block is taken for nothing."),
    Theorem("CONTIGUOUS", "Computed tokens advance by what was granted, and fall by what was rejected."),
    Theorem("WRITE", "A block that a step writes is held by one request only, and nobody can hit it before."),
    Theorem("CONTENT", "Each slot below a request's computed tokens holds its own prefix, once the step is done."),
    Theorem("KEY", "A key names the content of its block: behind publication, hit, eviction and reuse."),
    Theorem("LAST", "Each grant computes something known, and nothing unknown but its drafts."),
    Theorem("PREEMPTED", "Who is preempted was not scheduled in this step, holds nothing and has computed nothing."),
    Theorem("STATE", "Each request is in exactly one queue, or gone."),
    Theorem(
        "ORDER",
        "Places in running, then set aside, then waiting are kept: only an admission passes those set aside.",
    ),
    Theorem("CAPS", "Encoder items fit their budget and their cache, and give their space back."),
    Theorem("EMBED", "An encoder item that is overlapped is cached or computed; it leaves when it is consumed."),
    Theorem("WHOLE", "With chunked multimodal input off no item is cut."),
    Theorem("OUTPUT", "What is sampled is appended and delivered once, up to the end."),
    Theorem("FINISH", "A stop token ends a request as stop, a cap as length; its id ends once."),
    Theorem(
        "PROGRESS",
        "Every step serves the oldest request, and a bound on the steps of any falls: each that fits alone finishes.",
    ),
)

THEOREM_BY_ID = {theorem.id: theorem for theorem in THEOREMS}
assert set(THEOREM_BY_ID) <= set(LAW_BY_ID)

_LAW = re.compile(rf"(?:^|: )({'|'.join(THEOREM_BY_ID)}):")


def theorem_of(obligation: str) -> str:
    """The theorem that an obligation serves."""
    found = _LAW.search(obligation)
    return found[1] if found else TOTAL
