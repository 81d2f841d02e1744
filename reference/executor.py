"""The executor: carries out the plans of any scheduler on tensors.

It believes the plan in everything that scheduling decides, and nothing in what memory is concerned (see `bounds`).
What it keeps of a request is what a worker keeps: tokens, block table, encoder items in its cache.

External tokens are computed here in the step that loads them: the store of this engine is recomputation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from reference.attention import Attention
from reference.batch import Batch, Row
from reference.bounds import OutOfBounds, check_batch, check_row
from reference.kv_tensors import KVTensors
from reference.model import Model, Watch
from spec.vocabulary import Admission, Config, Grant, Request, StepPlan


@dataclass
class Held:
    """One request on the worker."""

    request: Request
    tokens: list[int]
    table: list[int] = field(default_factory=list)
    items: set[int] = field(default_factory=set)


class Sampling(NamedTuple):
    """What a step says of one request: logits (1 + drafts, vocabulary), and the tokens of greedy verification."""

    logits: Tensor
    drafts: tuple[int, ...]

    def greedy(self) -> tuple[int, ...]:
        """The best token behind each accepted draft: 1 to drafts + 1 of them (SPEC-4)."""
        best: list[int] = self.logits.argmax(-1).tolist()
        accepted = 0
        while accepted < len(self.drafts) and self.drafts[accepted] == best[accepted]:
            accepted += 1
        return tuple(best[: accepted + 1])


class Executor:
    """A model and its paged cache, driven by plans.

    handed_out   every block that a plan ever handed out as new
    pad_to       the number of tokens of a batch is padded to a multiple of this
    """

    def __init__(
        self, model: Model, config: Config, attend: Attention, pad_to: int = 1, watch: Watch | None = None
    ) -> None:
        self.model = model
        self.config = config
        self.attend = attend
        self.pad_to = pad_to
        self.watch = watch
        self.cache = KVTensors(model.config, config, model.placement)
        self.arrived: dict[str, Request] = {}
        self.held: dict[str, Held] = {}
        self.handed_out: set[int] = set()

    def add(self, request: Request) -> None:
        """Makes a request known; its first grant brings it in."""
        self.arrived[request.request_id] = request

    def abort(self, request_id: str) -> None:
        """Forgets a request that never came in; plans tell of the others."""
        self.arrived.pop(request_id, None)

    def execute(self, plan: StepPlan) -> dict[str, Sampling]:
        """Runs one step; what each request samples whose grant reaches its last known token.  Raises OutOfBounds."""
        batch = self.prepare(plan)
        return self.run(batch, plan) if batch.rows else {}

    def prepare(self, plan: StepPlan) -> Batch:
        """Follows a plan; the batch that it asks for, with every bound checked."""
        self._forget(plan)
        rows = []
        for grant in plan.grants:
            held = self._take_in(grant)
            self._extend_table(held, grant)
            held.items.update(grant.items)
            rows.append(self._row(held, grant))
        for row in rows:
            check_row(row, self.config.num_blocks, self.config.block_size, self.handed_out)
        batch = Batch.of(rows, self.config.block_size)
        batch.pad(self.pad_to)
        return batch

    def run(self, batch: Batch, plan: StepPlan) -> dict[str, Sampling]:
        """Runs a prepared batch.  Raises OutOfBounds."""
        check_batch(batch, self.config.num_blocks)
        drafts = {grant.request_id: grant.drafts for grant in plan.grants}
        sampling = [(row, first) for row, first in zip(batch.rows, batch.firsts, strict=False) if row.sampling]
        at = [first + len(row.inputs) - n for row, first in sampling for n in range(row.sampling, 0, -1)]
        logits = self.model.forward(batch, self.cache, self.attend, at, self.watch)
        parts = logits.split([row.sampling for row, _ in sampling]) if sampling else ()
        return {
            row.request_id: Sampling(part, drafts[row.request_id])
            for (row, _), part in zip(sampling, parts, strict=True)
        }

    def settle(self, sampled: Mapping[str, tuple[int, ...]]) -> None:
        """Appends what was sampled; rejected drafts were never appended, their slots are written again."""
        for request_id, tokens in sampled.items():
            if request_id in self.held:
                self.held[request_id].tokens.extend(tokens)

    # --- following a plan ------------------------------------------------------------------------

    def _forget(self, plan: StepPlan) -> None:
        for request_id in plan.finished:
            self.held.pop(request_id, None)
        for request_id, index in plan.freed_items:
            if request_id in self.held:
                self.held[request_id].items.discard(index)
        for request_id in plan.preempted:
            if request_id in self.held:
                self.held[request_id].table = []

    def _take_in(self, grant: Grant) -> Held:
        """The request of a grant; a new one comes with it."""
        if grant.admission is Admission.NEW and grant.request_id in self.arrived:
            request = self.arrived.pop(grant.request_id)
            self.held[grant.request_id] = Held(request, list(request.prompt_token_ids))
        if grant.request_id not in self.held:
            raise OutOfBounds(f"{grant.request_id}: position {grant.start}: nobody added this request")
        return self.held[grant.request_id]

    def _extend_table(self, held: Held, grant: Grant) -> None:
        if grant.admission is not Admission.RUNNING:
            held.table = []
        new = new_blocks(grant, self.config.block_size)
        held.table.extend(grant.blocks)
        self.handed_out.update(new)

    def _row(self, held: Held, grant: Grant) -> Row:
        start, end = grant.start - grant.external, grant.start + grant.tokens
        known = len(held.tokens)
        text = [*held.tokens, *grant.drafts]
        if end > len(text):
            raise OutOfBounds(f"{grant.request_id}: position {len(text)}: no token is known there")
        inputs = [self.model.input_of_token(token) for token in text[start:end]]
        for index, item in enumerate(held.request.items):
            for position in range(max(item.offset, start), min(item.end, end)):
                if position >= grant.start and index not in held.items:
                    raise OutOfBounds(f"{grant.request_id}: position {position}: encoder item {index} is not cached")
                inputs[position - start] = self.model.input_of_item(item.content, position - item.offset)
        adapter = self.model.adapter_row(held.request.lora_id)
        sampling = end - known + 1 if end >= known else 0
        return Row(grant.request_id, start, tuple(inputs), adapter, tuple(held.table), sampling)


def new_blocks(grant: Grant, block_size: int) -> tuple[int, ...]:
    """The blocks of a grant that are not hits."""
    if grant.admission is Admission.RUNNING:
        return grant.blocks
    return grant.blocks[-(-(grant.start - grant.external) // block_size) :]
