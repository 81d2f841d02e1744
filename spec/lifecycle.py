"""How requests come and go outside a step: added, aborted, finished."""

from __future__ import annotations

from spec import encoder
from spec.formulas import longest_footprint
from spec.guards import Conjunct, Guard
from spec.pool import forget_keys, release
from spec.state import Live, State
from spec.vocabulary import Refused, Request, Status

ADD: Guard[tuple[State, Request]] = Guard(
    "add",
    (
        Conjunct(
            "id",
            "ST-4",
            lambda v: v[1].request_id not in v[0].live,
            lambda v: f"id: {v[1].request_id} is live",
        ),
        Conjunct(
            "fits alone",
            "PRG-1",
            lambda v: (
                "accepts_unservable" in v[0].profile.quirks
                or longest_footprint(v[1], v[0].config) <= v[0].config.num_blocks - 1
            ),
            lambda v: (
                f"pool: needs up to {longest_footprint(v[1], v[0].config)} blocks alone, "
                f"{v[0].config.num_blocks - 1} usable"
            ),
        ),
    ),
)


def add(state: State, request: Request) -> None:
    """Puts a request at the tail of the waiting queue (ST-4).  Raises Refused with the reason."""
    refusal = ADD.refusal((state, request))
    if refusal is not None:
        state.log.append(("add", refusal.name))
        raise Refused(refusal.reason)
    live = Live(request, state.config.max_model_len)
    state.live[request.request_id] = live
    state.waiting.append(live)
    state.log.append(("add", "ok"))


def abort(state: State, request_id: str) -> None:
    """Ends a request in any state and frees what it holds at once; an unknown id is ignored (ABT-1)."""
    live = state.live.get(request_id)
    if live is None:
        state.log.append(("abort", "unknown"))
        return
    state.log.append(("abort", live.status.value))
    if live.status is Status.RUNNING:
        state.running.remove(live)
    else:
        state.waiting.remove(live)
    finish(state, live)


def grammar_ready(state: State, request_id: str) -> None:
    """The grammar of a request is compiled; the request notices when it is next examined (ST-3)."""
    live = state.live.get(request_id)
    if live is not None:
        live.grammar_ready = True


def reset_prefix_cache(state: State) -> bool:
    """Forgets every prefix key, if no block is held; tells whether it did (RESET-1)."""
    done = forget_keys(state.pool)
    state.log.append(("reset", "ok" if done else "blocks held"))
    return done


def finish(state: State, live: Live) -> None:
    """Frees what a request holds and forgets it; its id goes into the next plan (FIN-2, FIN-3)."""
    live.status = Status.FINISHED
    release_table(state, live)
    encoder.free_all(state, live)
    del state.live[live.request.request_id]
    state.finished.append(live.request.request_id)


def release_table(state: State, live: Live) -> None:
    """Tail first, so that the blocks of a prefix outlive those that need it (FREE-1)."""
    for block in reversed(live.table) if state.config.enable_prefix_caching else live.table:
        release(state.pool, block)
    live.table = []
    live.published = 0
