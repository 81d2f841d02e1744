"""Seeded bugs: single actions of the spec made wrong, each of which a search must find.

A bug is (module, function, replacement).  The replacement gets the real function first.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from spec import allocation, encoder, lifecycle, outcome, pool, prefix, recount, running, waiting


class Bug(NamedTuple):
    """One wrong action, the scope in which it must be found, and the law that breaks first, or that a count is off."""

    name: str
    module: ModuleType
    function: str
    wrong: Callable[..., Any]
    scope: str
    law: str


def _forgets_to_withdraw(real: Callable[..., Any], p: pool.Pool) -> int:
    block, _ = p.free.popitem(last=False)
    p.refs[block] = 1
    return block


def _leaves_free_hit_in_queue(real: Callable[..., Any], p: pool.Pool, block: int) -> None:
    p.refs[block] += 1


def _frees_while_shared(real: Callable[..., Any], p: pool.Pool, block: int) -> None:
    p.refs[block] -= 1
    if p.refs[block] <= 1 and block not in p.free:
        p.free[block] = None


def _publishes_ahead(real: Callable[..., Any], state: Any, live: Any, computed: int, tokens: int) -> None:
    size = state.config.block_size
    real(state, live, computed, min(-(-(computed + tokens) // size) * size, live.known) - computed)


def _hits_everything(real: Callable[..., Any], state: Any, live: Any) -> int:
    return len(live.keys)


def _key_without_adapter(
    real: Callable[..., Any], state: Any, live: Any, index: int, items: tuple[tuple[int, int], ...]
) -> int:
    size = state.config.block_size
    parent = live.keys[index - 1] if index else prefix.ROOT
    key: int = state.key_table.setdefault((parent, items, tuple(live.tokens[index * size : (index + 1) * size])), None)
    return key


def _keeps_computed(real: Callable[..., Any], state: Any, step: Any) -> Any:
    victim = state.running[-1]
    computed = victim.computed
    real(state, step)
    victim.computed = computed
    return victim


def _preempts_the_oldest(real: Callable[..., Any], state: Any, step: Any) -> Any:
    state.running.append(state.running.pop(0))
    return real(state, step)


def _never_rolls_back(real: Callable[..., Any], scheduled: int, generated: int) -> int:
    return 0


def _leaks_the_last_block(real: Callable[..., Any], state: Any, live: Any) -> None:
    live.table = live.table[:-1]
    real(state, live)


def _loses_encoder_space(real: Callable[..., Any], state: Any, live: Any, index: int) -> None:
    free = state.encoder_free
    real(state, live, index)
    state.encoder_free = free


def _ignores_free_hits(real: Callable[..., Any], free: int, hits: int) -> int:
    return free


def _one_block_too_few(real: Callable[..., Any], *sizes: int) -> int:
    needed: int = real(*sizes)
    return needed - 1 if needed > 1 else needed


BUGS: tuple[Bug, ...] = (
    Bug("take keeps the key", allocation, "take", _forgets_to_withdraw, "hits", recount.ID),
    Bug("hit stays in the free queue", allocation, "touch", _leaves_free_hit_in_queue, "hits", "COUNT"),
    Bug("shared block freed", lifecycle, "release", _frees_while_shared, "hits", "COUNT"),
    Bug("key before content", allocation, "publish_complete", _publishes_ahead, "chunks", "KEY"),
    Bug("the last token hits", prefix, "_keys_to_look_up", _hits_everything, "hits", "PROGRESS"),
    Bug("key without adapter", prefix, "_intern", _key_without_adapter, "adapters", "CONTENT"),
    Bug("preempted keeps computed", running, "preempt_one", _keeps_computed, "preemption-aborts", "ATOMIC"),
    Bug("oldest is preempted", running, "preempt_one", _preempts_the_oldest, "preemption", "PREEMPTED"),
    Bug("drafts never roll back", outcome, "rejected_drafts", _never_rolls_back, "drafts", "ATOMIC"),
    Bug("a block leaks", lifecycle, "release_table", _leaks_the_last_block, "hits", "COUNT"),
    Bug("encoder space is lost", encoder, "free_item", _loses_encoder_space, "encoder", recount.ID),
    Bug("free hits counted twice", allocation, "available", _ignores_free_hits, "free-hits", "ANSWER"),
    Bug("one block too few", waiting, "blocks_needed", _one_block_too_few, "hits", "ANSWER"),
)
