"""Blocks and tokens for one request: what it would get, whether it can, and the plan entry if it does.

Running and waiting requests differ in what they ask for; from there on both take this way.
"""

from __future__ import annotations

from collections.abc import Sequence

from spec import encoder
from spec.formulas import available, blocks_taken, scheduled_drafts
from spec.guards import Conjunct, Guard
from spec.pool import take, touch
from spec.prefix import publish_complete
from spec.state import Live, State
from spec.vocabulary import Admission, Config, Grant


class Step:
    """One `schedule` in the making: what is left of the budgets, what was decided so far (BUD-1)."""

    __slots__ = (
        "adapters",
        "budget",
        "encoder_budget",
        "grants",
        "index",
        "preempted",
        "skipped",
    )

    def __init__(self, config: Config) -> None:
        self.budget = config.max_num_batched_tokens
        self.encoder_budget = config.max_num_encoder_input_tokens
        self.index = 0
        self.grants: list[Grant] = []
        self.preempted: list[str] = []
        self.adapters: set[int] = set()
        self.skipped: list[Live] = []


class Attempt:
    """What one request would get: the view of the guards of an allocation.

    computed   tokens that need no computation: done before, hit, or external
    needed     blocks missing from the table, hits counted as held; may be negative after a rollback
    evictable  hits that are free at the moment
    """

    hits: Sequence[int] = ()
    evictable = 0
    external = 0
    needed = 0
    chosen: encoder.Chosen | None = None

    def __init__(self, state: State, step: Step, live: Live, computed: int, tokens: int) -> None:
        self.state = state
        self.step = step
        self.live = live
        self.computed = computed
        self.tokens = tokens


def _pool_reason(a: Attempt) -> str:
    hits = f", {a.evictable} of which are hits" if a.evictable else ""
    return f"pool: needs {a.needed} blocks, {len(a.state.pool.free)} free{hits}"


ALLOCATE: Guard[Attempt] = Guard(
    "allocate",
    (
        Conjunct(
            "nothing to compute",
            "RUN-5",
            lambda a: a.tokens > 0,
            lambda a: "tokens: none left to schedule before an encoder item",
        ),
        Conjunct(
            "pool",
            "ALLOC-A",
            lambda a: a.needed <= available(len(a.state.pool.free), a.evictable),
            _pool_reason,
        ),
    ),
)


GRANTED = {admission: ("grant", admission.value) for admission in Admission}


def choose_items(a: Attempt) -> None:
    """Cuts the tokens before the first item that cannot be computed in this step (ENC-2)."""
    a.chosen = encoder.choose_items(a.state, a.live, a.computed, a.tokens, a.step.encoder_budget)
    a.tokens = a.chosen.tokens


def grant(a: Attempt, admission: Admission) -> None:
    """Takes blocks, publishes keys, charges the budgets and writes the plan entry (ALLOC-A, BUD-5, RUN-8)."""
    state, live = a.state, a.live
    taken = _extend_table(a)
    if state.config.enable_prefix_caching:
        publish_complete(state, live, a.computed, a.tokens)
    drafts = _drafts_of(a) if live.drafts and admission is Admission.RUNNING else ()
    items: tuple[int, ...] = ()
    if a.chosen is not None:
        items = a.chosen.items
        a.step.encoder_budget = a.chosen.budget
        for index in items:
            encoder.cache_item(state, live, index)
    blocks = taken if admission is Admission.RUNNING else tuple(live.table)
    a.step.grants.append(
        Grant(live.request.request_id, admission, a.computed, a.tokens, blocks, drafts, items, a.external)
    )
    a.step.budget -= a.tokens
    state.log.append(GRANTED[admission])


def _extend_table(a: Attempt) -> tuple[int, ...]:
    """Adopts the hits, then takes blocks from the front of the free queue; returns the taken ones."""
    pool, live, config = a.state.pool, a.live, a.state.config
    for block in a.hits:
        touch(pool, block)
    if a.hits:
        live.table.extend(a.hits)
        live.published = len(a.hits)
        a.state.log.append(("adopt", "free hits" if a.evictable else "held hits"))
    if a.needed <= 0:
        return ()
    count = blocks_taken(a.needed, len(live.table), config.max_model_len, config.block_size)
    if count < a.needed:
        a.state.log.append(("take", "capped at the model length"))
    if count == 0:
        return ()
    keys, held = len(pool.key_of), len(live.table)
    for _ in range(count):
        live.table.append(take(pool))
    a.state.log.append(("take", "evicts a key" if len(pool.key_of) < keys else "ok"))
    return tuple(live.table[held:])


def _drafts_of(a: Attempt) -> tuple[int, ...]:
    """The drafts inside the grant; the rest is dropped, and if there are none all are kept (SPEC-2)."""
    scheduled = scheduled_drafts(a.tokens, a.computed, a.live.known)
    if scheduled == 0:
        a.state.log.append(("drafts", "none scheduled"))
        return ()
    a.state.log.append(("drafts", "all scheduled" if scheduled == len(a.live.drafts) else "trimmed"))
    a.live.drafts = a.live.drafts[:scheduled]
    return a.live.drafts
