"""What can be seen of any paged scheduler from outside: its plans, its results, and what they imply.

The observer follows requests, block tables and shadow memory by the plans alone.  It decides
nothing: `laws` say what must hold of what it saw.  Work per step is proportional to what the step
schedules, never to the pool or to the length of a context.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spec.formulas import ceil_div
from spec.shadow import Content, Identity, Shadow, letters, root
from spec.vocabulary import (
    Admission,
    Config,
    FinishReason,
    Grant,
    ModelOutput,
    Request,
    Status,
    StepPlan,
    StepResult,
)


class Seen:
    """One live request, as seen from outside.

    adopted     leading blocks of the table that were taken over as hits
    prefixes    identities of the prefixes before its first blocks, as far as they were needed
    high_water  the most tokens that were ever computed of it
    stops       tokens that end it
    limit       known tokens at which it ends
    """

    __slots__ = (
        "adopted",
        "computed",
        "grammar_ready",
        "high_water",
        "known",
        "limit",
        "prefixes",
        "request",
        "status",
        "stops",
        "table",
        "tokens",
    )

    def __init__(self, request: Request, config: Config) -> None:
        self.request = request
        self.status = Status.WAITING
        self.grammar_ready = not request.needs_grammar
        self.tokens = list(request.prompt_token_ids)
        self.known = len(self.tokens)
        self.limit = min(config.max_model_len, self.known + request.max_tokens)
        self.stops = set(request.stop_token_ids)
        if request.eos_token_id is not None and not request.ignore_eos:
            self.stops.add(request.eos_token_id)
        self.computed = 0
        self.high_water = 0
        self.table: list[int] = []
        self.adopted = 0
        self.prefixes: list[Identity] = [root(request)]

    def content(self, index: int, block_size: int, end: int, drafts: tuple[int, ...] = ()) -> Content:
        """What block `index` of the table must hold of the positions up to `end`, drafts behind the known tokens."""
        while len(self.prefixes) <= index:
            self.prefixes.append(self.content(len(self.prefixes) - 1, block_size, end, drafts).identity)
        start, stop = index * block_size, min((index + 1) * block_size, end)
        tokens = self.tokens[start:stop]
        if stop > self.known:
            tokens.extend(drafts[max(start - self.known, 0) : stop - self.known])
        return Content(self.prefixes[index], letters(self.request, tokens, start))

    def forget_beyond(self, position: int, block_size: int) -> None:
        """Forgets prefixes that reach beyond `position`: other tokens will stand there."""
        del self.prefixes[position // block_size + 1 :]


Row = tuple[Grant, Seen, Status, int, int, int]
"""A grant, its request, and what held of that before the step: status, computed and known tokens; then where it ends.

A plain tuple, because one is made for each grant of each step.
"""


class Overtaking(NamedTuple):
    """An admission that went past a waiting request, with the adapters that were in use at that moment."""

    admitted: Seen
    passed: Seen
    adapters: frozenset[int]


@dataclass(slots=True)
class StepSeen:
    """One plan, after it was applied to what was known before it.

    rows      every grant
    taking    those that got blocks
    admitted  those that were not running before
    """

    plan: StepPlan
    rows: list[Row] = field(default_factory=list)
    taking: list[Row] = field(default_factory=list)
    admitted: list[Row] = field(default_factory=list)
    preempted: list[Seen] = field(default_factory=list)
    running_before: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    overtakings: list[Overtaking] = field(default_factory=list)
    handed_out_twice: list[tuple[str, int]] = field(default_factory=list)
    shared_writes: list[tuple[str, int]] = field(default_factory=list)
    freed_uncached: list[tuple[str, int]] = field(default_factory=list)


class Ending(NamedTuple):
    """How many of the sampled tokens are due, and why the request ends with the last one, if it does."""

    tokens: int
    reason: FinishReason | None
    stop_token: int | None


class SettledRow(NamedTuple):
    """What was sampled for a request, and what the scheduler delivered of it."""

    seen: Seen
    sampled: tuple[int, ...]
    emitted: tuple[int, ...]
    due: Ending


@dataclass(slots=True)
class ResultSeen:
    """One result beside what was due.

    settled    requests that ended, should have ended, or were delivered something else than was sampled
    """

    result: StepResult
    settled: list[SettledRow] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What an implementation shows of its inside, between two calls.

    A look at some blocks covers their `refs` and `keys`, `free_blocks` and `encoder_free`; the rest is empty
    and `free_order` is None, so that looking costs as much as what changed.  Keys are opaque: only their
    equality is used; a block without a key is absent.  `leftovers` names per-request maps that still hold an
    entry for a request that is gone, as `map: request id`.
    """

    running: tuple[str, ...]
    waiting: tuple[str, ...]
    computed: Mapping[str, int]
    tables: Mapping[str, Sequence[int]]
    free_blocks: int
    refs: Mapping[int, int]
    keys: Mapping[int, Hashable]
    free_order: tuple[int, ...] | None = None
    encoder_free: int | None = None
    leftovers: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether this was a look at everything."""
        return self.free_order is not None


class Observer:
    """Everything seen so far.

    holders       how many live tables hold each block; absent means none
    shared        blocks that more than one live table holds
    cached        encoder cache entries that were granted and not yet reported as freed, with their length
    meanings      the content that each published key was first seen to name
    ended         ids that ended since the last plan
    stale_steps   steps in a row in which the first in line computed nothing new
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.live: dict[str, Seen] = {}
        self.running: dict[str, Seen] = {}
        self.waiting: deque[Seen] = deque()
        self.holders: dict[int, int] = {}
        self.shared: set[int] = set()
        self.shadow = Shadow()
        self.cached: dict[tuple[str, int], int] = {}
        self.encoder_used = 0
        self.meanings: dict[Hashable, Identity] = {}
        self.ended: list[str] = []
        self.stale_steps = 0
        self.head: tuple[str, int] | None = None

    # --- requests ------------------------------------------------------------------------------

    def add(self, request: Request) -> None:
        seen = Seen(request, self.config)
        self.live[request.request_id] = seen
        self.waiting.append(seen)

    def abort(self, request_id: str) -> None:
        seen = self.live.get(request_id)
        if seen is not None:
            self._end(seen)

    def grammar_ready(self, request_id: str) -> None:
        if request_id in self.live:
            self.live[request_id].grammar_ready = True

    def _end(self, seen: Seen) -> None:
        if seen.status is Status.RUNNING:
            del self.running[seen.request.request_id]
        else:
            self.waiting.remove(seen)
        seen.status = Status.FINISHED
        self._release(seen)
        del self.live[seen.request.request_id]
        self.ended.append(seen.request.request_id)

    def _release(self, seen: Seen) -> None:
        for block in seen.table:
            self.holders[block] -= 1
            if self.holders[block] == 0:
                del self.holders[block]
            elif self.holders[block] == 1:
                self.shared.discard(block)
        seen.table = []
        seen.adopted = 0

    # --- a plan --------------------------------------------------------------------------------

    def apply(self, plan: StepPlan) -> StepSeen:
        """Follows a well-formed plan: preemptions, then tables, then all writes of the step."""
        step = StepSeen(plan, running_before=list(self.running) if plan.preempted else [], ended=self.ended)
        self.ended = []
        self._free_items(step)
        for request_id in plan.preempted:
            step.preempted.append(self._preempt(request_id))
        size = self.config.block_size
        for grant in plan.grants:
            seen = self.live[grant.request_id]
            end = grant.start + grant.tokens
            row = (grant, seen, seen.status, seen.computed, seen.known, end)
            step.rows.append(row)
            if grant.admission is not Admission.RUNNING:
                step.admitted.append(row)
                self._admit(step, seen, grant)
            if grant.blocks:
                step.taking.append(row)
                self._extend_table(step, seen, grant)
            start = grant.start - grant.external
            if self.shared:
                self._guard_written_blocks(step, seen, start // size, (end - 1) // size)
            if start // size < end // size:
                self._write_complete_blocks(seen, grant.drafts, start // size, end)
            seen.computed = end
            if end > seen.high_water:
                seen.high_water = end
            if grant.items:
                self._cache_items(seen, grant)
        self._watch_the_head()
        return step

    def _preempt(self, request_id: str) -> Seen:
        seen = self.running.pop(request_id)
        self._release(seen)
        seen.status = Status.PREEMPTED
        seen.computed = 0
        seen.forget_beyond(seen.known, self.config.block_size)
        self.waiting.appendleft(seen)
        return seen

    def _admit(self, step: StepSeen, seen: Seen, grant: Grant) -> None:
        passed = []
        while self.waiting and self.waiting[0] is not seen:
            passed.append(self.waiting.popleft())
        if passed:
            adapters = self.adapters_in_use()
            step.overtakings.extend(Overtaking(seen, other, adapters) for other in passed)
        if self.waiting:
            self.waiting.popleft()
        self.waiting.extendleft(reversed(passed))
        self.running[grant.request_id] = seen
        seen.status = Status.RUNNING

    def _extend_table(self, step: StepSeen, seen: Seen, grant: Grant) -> None:
        hit_tokens = 0 if grant.admission is Admission.RUNNING else grant.start - grant.external
        adopted = ceil_div(hit_tokens, self.config.block_size)
        for index, block in enumerate(grant.blocks):
            if index >= adopted:
                self.shadow.clear(block)
            if block not in self.holders:
                self.holders[block] = 1
            else:
                self.holders[block] += 1
                self.shared.add(block)
                if index >= adopted:
                    step.handed_out_twice.append((grant.request_id, block))
        if grant.admission is Admission.RUNNING:
            seen.table.extend(grant.blocks)
        else:
            seen.table = list(grant.blocks)
            seen.adopted = adopted

    def _guard_written_blocks(self, step: StepSeen, seen: Seen, first: int, last: int) -> None:
        """In plan order, so that a hit on a block of this step comes behind the write of it."""
        for block in seen.table[first : last + 1]:
            if block in self.shared:
                step.shared_writes.append((seen.request.request_id, block))

    def _write_complete_blocks(self, seen: Seen, drafts: tuple[int, ...], first: int, end: int) -> None:
        """A block is written here when its last slot is: until then its owner alone can read it."""
        size = self.config.block_size
        for index in range(first, min(end // size, len(seen.table))):
            self.shadow.write(seen.table[index], seen.content(index, size, end, drafts))

    def _cache_items(self, seen: Seen, grant: Grant) -> None:
        for index in grant.items:
            length = seen.request.items[index].length
            self.encoder_used += length - self.cached.get((grant.request_id, index), 0)
            self.cached[grant.request_id, index] = length

    def _free_items(self, step: StepSeen) -> None:
        for entry in step.plan.freed_items:
            if entry in self.cached:
                self.encoder_used -= self.cached.pop(entry)
            else:
                step.freed_uncached.append(entry)

    def _watch_the_head(self) -> None:
        """Counts the steps in which the first in line computed nothing new (STARVE)."""
        head = next(iter(self.running.values()), None)
        if head is None:
            head = next((seen for seen in self.waiting if seen.grammar_ready), None)
        mark = None if head is None else (head.request.request_id, head.high_water)
        self.stale_steps = self.stale_steps + 1 if mark is not None and mark == self.head else 0
        self.head = mark

    def adapters_in_use(self) -> frozenset[int]:
        return frozenset(s.request.lora_id for s in self.running.values() if s.request.lora_id)

    # --- a result ------------------------------------------------------------------------------

    def settle(self, step: StepSeen, output: ModelOutput, result: StepResult) -> ResultSeen:
        """Follows a well-formed result: rejected drafts, appended tokens, ends."""
        seen_result = ResultSeen(result)
        emitted = dict(result.emitted)
        ending = {end.request_id for end in result.finished}
        for grant, seen, *_ in step.rows:
            request_id = grant.request_id
            sampled = output.sampled.get(request_id, ())
            tokens = emitted.get(request_id, ())
            if not sampled and not tokens:
                continue
            due = self.due(seen, sampled)
            if tokens != sampled or due.reason is not None or request_id in ending:
                seen_result.settled.append(SettledRow(seen, sampled, tokens, due))
            seen.tokens.extend(tokens)
            seen.known += len(tokens)
            if grant.drafts:
                self._roll_back(seen, len(grant.drafts) + 1 - len(sampled))
        for request_id in ending:
            if request_id in self.live:
                self._end(self.live[request_id])
        return seen_result

    def _roll_back(self, seen: Seen, rejected: int) -> None:
        """What rejected drafts left in the blocks is nobody's prefix."""
        size, end = self.config.block_size, seen.computed
        seen.computed -= rejected
        seen.forget_beyond(seen.computed, size)
        first = seen.computed // size
        for index in range(first, min(end // size, len(seen.table))):
            self.shadow.clear(seen.table[index])
        if first < end // size and seen.computed % size:
            self.shadow.write(seen.table[first], seen.content(first, size, seen.computed))

    def due(self, seen: Seen, sampled: tuple[int, ...]) -> Ending:
        """After how many of the sampled tokens a request must end, and why: stop tokens before length caps."""
        for count, token in enumerate(sampled, 1):
            if token in seen.stops:
                by_id = token != seen.request.eos_token_id or seen.request.ignore_eos
                return Ending(count, FinishReason.STOP, token if by_id else None)
            if seen.known + count >= seen.limit:
                return Ending(count, FinishReason.LENGTH, None)
        return Ending(len(sampled), None, None)
