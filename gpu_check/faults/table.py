"""The table of seeded faults."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from gpu_check.faults import batches, kernels, plans, workers
from gpu_check.faults.kernels import Dials
from gpu_check.inspector import Inspector


def _in_batch(inspector: Inspector, change: Any) -> None:
    inspector.change = change() if isinstance(change, type) else change


def _of_slots(inspector: Inspector, change: Any) -> None:
    cache = inspector.executor.cache
    inspector.change = partial(change, slots=cache.num_blocks * cache.block_size)


def _of_items(inspector: Inspector, change: Any) -> None:
    inspector.change = partial(change, vocabulary=inspector.executor.model.config.vocabulary)


def _in_executor(inspector: Inspector, change: Any) -> None:
    change(inspector.executor)


class Stage(NamedTuple):
    """Where a fault sits, and how it gets there; None for plans, which are changed on their way to the executor."""

    name: str
    install: Callable[[Inspector, Any], None] | None


BATCH = Stage("batch", _in_batch)
SLOTS = Stage("batch", _of_slots)
ITEMS = Stage("batch", _of_items)
WRITE = Stage("write", _in_executor)
ATTENTION = Stage("attention", _in_executor)
WORKER = Stage("worker", _in_executor)
PLAN = Stage("plan", None)


class Fault(NamedTuple):
    """One fault: where it sits, what goes wrong, and the code that makes it so."""

    name: str
    stage: Stage
    sentence: str
    change: Any


FAULTS: tuple[Fault, ...] = (
    Fault("slot-one-too-far", BATCH, "KV is written one slot too far", batches.slot_one_too_far),
    Fault("block-offset-lost", BATCH, "KV is written to the first slot of its block", batches.block_offset_lost),
    Fault("chunk-at-offset-zero", BATCH, "a chunk is written where the prompt begins", batches.chunk_at_offset_zero),
    Fault("last-token-not-written", BATCH, "the last token goes to the trash", batches.last_token_not_written),
    Fault("neighbour-written", BATCH, "a token overwrites a live block of somebody else", batches.neighbour_written),
    Fault("pads-write-last-slot", SLOTS, "padding is written to slot -1, the last one", batches.pads_write_last_slot),
    Fault("pads-write-first-row", BATCH, "padding is written over the first row", batches.pads_write_first_row),
    Fault("narrow-slots", SLOTS, "slot numbers overflow", batches.narrow_slots),
    Fault("kv-len-one-too-long", BATCH, "one slot more is read than was written", batches.kv_len_one_too_long),
    Fault("kv-len-one-too-short", BATCH, "the newest slot is not read", batches.kv_len_one_too_short),
    Fault("stale-row", BATCH, "a row keeps the table of its predecessor", batches.StaleRow),
    Fault("swapped-rows", BATCH, "two rows have each other's table", batches.swapped_rows),
    Fault("zero-rows-beside-hits", BATCH, "beside a context, prompts lose their table", batches.zero_rows_beside_hits),
    Fault("table-reversed", BATCH, "a table is read backwards", batches.table_reversed),
    Fault("last-page-of-first", BATCH, "each row ends with a page of the first", batches.last_page_of_first),
    Fault("position-one-too-far", BATCH, "rotary positions behind a context are off", batches.position_one_too_far),
    Fault("positions-from-zero", BATCH, "rotary positions begin anew in each chunk", batches.positions_from_zero),
    Fault("adapter-ignored", BATCH, "everybody is served by the base model", batches.adapter_ignored),
    Fault("adapter-of-first", BATCH, "everybody is served by the adapter of the first", batches.adapter_of_first),
    Fault("inputs-shifted", BATCH, "a chunk repeats its first token", batches.inputs_shifted),
    Fault("inputs-swapped", BATCH, "two rows compute each other's last token", batches.inputs_swapped),
    Fault("items-as-tokens", ITEMS, "an item's placeholder is embedded", batches.items_as_tokens),
    Fault("item-place-off", ITEMS, "an item is shifted by one place", batches.item_place_off),
    Fault("nothing-written", WRITE, "the last layer writes nothing", kernels.nothing_written),
    Fault("values-not-written", WRITE, "only keys are written", kernels.values_not_written),
    Fault("layer-lost", WRITE, "every layer writes into the first", kernels.layer_lost),
    Fault("keys-and-values-swapped", WRITE, "keys are stored as values", kernels.keys_and_values_swapped),
    Fault("written-in-half", WRITE, "KV is rounded to half on its way", kernels.written_in_half),
    Fault("written-row-by-row", WRITE, "a row reads before another has written", kernels.written_row_by_row),
    Fault("mask-top-left", ATTENTION, "the mask of a chunk is aligned top left", Dials(mask="top left")),
    Fault("mask-missing", ATTENTION, "a chunk sees its own future", Dials(mask="none")),
    Fault("garbage-tail", ATTENTION, "dead slots are masked, not zeroed", Dials(zeroed=False)),
    Fault("context-ignored", ATTENTION, "only the new tokens are attended to", Dials(context=False)),
    Fault("heads-interleaved", ATTENTION, "query heads read another group's KV", Dials(grouped=False)),
    Fault("scale-missing", ATTENTION, "scores are not scaled", Dials(scale=8**0.5)),
    Fault("last-page-dropped", ATTENTION, "an unfinished page is not read", Dials(whole_pages=True)),
    Fault("summed-in-half", ATTENTION, "attention is computed in a narrower type", Dials(half=True)),
    Fault("splits-averaged", ATTENTION, "two splits are merged without their weights", Dials(merged=True)),
    Fault("rejected-drafts-kept", WORKER, "rejected drafts become text", workers.rejected_drafts_kept),
    Fault("preempted-keeps-table", WORKER, "a resumed request keeps its old table", workers.preempted_keeps_table),
    Fault("blocks-replaced", WORKER, "new blocks replace the first ones", workers.blocks_replaced),
    Fault("resumed-without-output", WORKER, "a preempted request forgets its output", workers.resumed_without_output),
    Fault("text-of-predecessor", WORKER, "a newcomer inherits another text", workers.text_of_predecessor),
    Fault("live-block-handed-out", PLAN, "a block is handed out while it is held", plans.LiveBlockHandedOut),
    Fault("block-twice", PLAN, "a block stands in a table twice", plans.BlockTwice),
    Fault("table-too-short", PLAN, "the last block is missing", plans.TableTooShort),
    Fault("block-outside-pool", PLAN, "a block id equals the number of blocks", plans.BlockOutsidePool),
    Fault("reserved-block", PLAN, "the reserved block is handed out", plans.ReservedBlock),
    Fault("hit-on-untouched", PLAN, "a block that nobody was given is hit", plans.HitOnUntouched),
    Fault("hit-on-uncomputed", PLAN, "a key is published for tokens never computed", plans.HitOnUncomputed),
    Fault("hit-on-foreign", PLAN, "a block with another prefix is hit", plans.HitOnForeign),
    Fault(
        "hits-swapped", PLAN, "two hits change places; keys carry their position, so the sums stay", plans.HitsSwapped
    ),
    Fault("stale-hit", PLAN, "a block is hit after it was given away", plans.StaleHit),
    Fault("start-too-late", PLAN, "a position is never computed", plans.StartTooLate),
    Fault("resumed-at-old-position", PLAN, "a resumed request is not computed anew", plans.ResumedAtOldPosition),
    Fault("external-not-loaded", PLAN, "external tokens are counted, not loaded", plans.ExternalNotLoaded),
    Fault("items-not-computed", PLAN, "an encoder item is never computed", plans.ItemsNotComputed),
    Fault("drafts-reversed", PLAN, "drafts are verified in the wrong order", plans.DraftsReversed),
)
"""Every fault, by the stage at which it sits."""
