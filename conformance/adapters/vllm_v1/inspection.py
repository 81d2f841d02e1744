"""What can be read of vLLM's scheduler between two calls.  Nothing is changed by looking."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from conformance.protocol import Inspection
from spec.vocabulary import RESERVED_BLOCK

PER_REQUEST_MAPS: Mapping[str, tuple[str, ...]] = {
    "req_to_blocks": ("kv_cache_manager", "req_to_blocks"),
    "req_to_block_hashes": ("kv_cache_manager", "req_to_block_hashes"),
    "num_cached_block": ("kv_cache_manager", "num_cached_block"),
    "encoder cached": ("encoder_cache_manager", "cached"),
    "_cached_reqs_data": ("_cached_reqs_data",),
}
"""Maps by request id that a request must have left when it is gone, and where they are."""


def inspection(scheduler: Any, blocks: Collection[int] | None = None) -> Inspection:
    """Everything; or, of these blocks, references and keys beside what costs little."""
    pool = scheduler.kv_cache_manager.block_pool
    look = pool.blocks if blocks is None else [pool.blocks[block] for block in blocks]
    part = Inspection(
        running=(),
        waiting=(),
        computed={},
        tables={},
        free_blocks=pool.get_num_free_blocks(),
        refs={block.block_id: block.ref_cnt for block in look if block.block_id != RESERVED_BLOCK},
        keys={block.block_id: block.block_hash for block in look if block.block_hash is not None},
        encoder_free=scheduler.encoder_cache_manager.num_free_slots,
    )
    return part if blocks is not None else _with_the_rest(scheduler, part)


def _with_the_rest(scheduler: Any, part: Inspection) -> Inspection:
    return replace(
        part,
        running=tuple([request.request_id for request in scheduler.running]),
        waiting=tuple([request.request_id for request in scheduler.waiting]),
        computed=_computed(scheduler),
        tables=_tables(scheduler),
        free_order=_free_order(scheduler),
        leftovers=tuple(_leftovers(scheduler)),
    )


def _computed(scheduler: Any) -> dict[str, int]:
    return {request_id: request.num_computed_tokens for request_id, request in scheduler.requests.items()}


def _tables(scheduler: Any) -> dict[str, tuple[int, ...]]:
    tables = scheduler.kv_cache_manager.req_to_blocks
    return {request_id: tuple([block.block_id for block in table]) for request_id, table in tables.items()}


def _free_order(scheduler: Any) -> tuple[int, ...]:
    queue = scheduler.kv_cache_manager.block_pool.free_block_queue
    return tuple([block.block_id for block in queue.get_all_free_blocks()])


def _leftovers(scheduler: Any) -> Iterable[str]:
    for name, path in PER_REQUEST_MAPS.items():
        entries = scheduler
        for attribute in path:
            entries = getattr(entries, attribute)
        yield from (f"{name}: {request_id}" for request_id in sorted(entries.keys() - scheduler.requests.keys()))
