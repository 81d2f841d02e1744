"""The scheduler: who computes how many tokens in the next step, and in which blocks.

There is no prefill phase and no decode phase.  Every request has a number of known tokens and a
number of computed ones, and each step lets computed catch up with known, within the token
budget.  Running requests are served first, in order of admission; if the pool runs dry the tail
of the running list is preempted.  Waiting requests are admitted only in steps without
preemption, first come, first served.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reference.encoder_cache import EncoderCache, Encoding
from reference.kv_cache import KVCache
from reference.limits import finish_after, footprint_blocks
from reference.live_request import LiveRequest
from reference.waiting_queue import WaitingQueue
from spec.vocabulary import (
    Admission,
    Config,
    Finish,
    Grant,
    ModelOutput,
    Refused,
    Request,
    Status,
    StepPlan,
    StepResult,
)

_ADMISSION_OF: dict[Status, Admission] = {
    Status.WAITING: Admission.NEW,
    Status.PREEMPTED: Admission.RESUMED,
    Status.RUNNING: Admission.RUNNING,
}


@dataclass(slots=True)
class _Step:
    """What is left of a step's budgets, and what has been decided so far."""

    budget: int
    encoder_budget: int
    grants: list[Grant] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)


class Scheduler:
    """First come, first served scheduling of requests over one block pool.

    `schedule` decides a step, `commit` takes in what the model made of it.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.live: dict[str, LiveRequest] = {}
        self.running: list[LiveRequest] = []
        self.waiting = WaitingQueue()
        self.kv_cache = KVCache(config)
        self.encoder_cache = EncoderCache(config)
        self._finished: set[str] = set()

    def add(self, request: Request) -> None:
        """Put a request at the back of the waiting queue (ST-4).

        Raises Refused for the id of a live request, and for a request that could not be served
        even if it were alone: it would be retried for ever (PRG-2).
        """
        if request.request_id in self.live:
            raise Refused(f"id: {request.request_id} is live")
        needed = footprint_blocks(request, self.config)
        usable = self.config.num_blocks - 1
        if needed > usable:
            raise Refused(f"pool: {request.request_id} may need {needed} blocks, {usable} are usable")
        live = LiveRequest.arriving(request)
        self.live[request.request_id] = live
        self.waiting.append(live)

    def abort(self, request_id: str) -> None:
        """End a request at once, even one whose step is in flight; unknown ids are ignored (ABT-1)."""
        live = self.live.get(request_id)
        if live is None:
            return
        if live.status is Status.RUNNING:
            self.running.remove(live)
        else:
            self.waiting.remove(live)
        self._end(live)

    def grammar_ready(self, request_id: str) -> None:
        """Note that a grammar is compiled; it counts when the request is next examined (ST-3)."""
        live = self.live.get(request_id)
        if live is not None:
            live.grammar_is_ready = True

    def reset_prefix_cache(self) -> bool:
        """Forget all cached blocks; False, and no change, if a request holds blocks (RESET-1)."""
        return self.kv_cache.pool.reset_index()

    def schedule(self) -> StepPlan:
        """Decide the next step and count its tokens as computed (ADV-1)."""
        step = _Step(self.config.max_num_batched_tokens, self.config.max_num_encoder_input_tokens)
        self._serve_running(step)
        # Who comes in now would take the blocks that a preempted request had to give up (ADM-1).
        if not step.preempted:
            self._admit_waiting(step)
        finished = tuple(sorted(self._finished))
        self._finished.clear()
        return StepPlan(
            grants=tuple(step.grants),
            preempted=tuple(step.preempted),
            finished=finished,
            freed_items=self.encoder_cache.drain_freed(),
            common_prefix_blocks=self._common_prefix_blocks(),
        )

    def commit(self, plan: StepPlan, output: ModelOutput) -> StepResult:
        """Take in the model's output for a plan (UPD-1).

        A request that has ended, or was preempted, since the plan was made is passed over.
        """
        grants = {grant.request_id: grant for grant in plan.grants}
        emitted: list[tuple[str, tuple[int, ...]]] = []
        finishes: list[Finish] = []
        for live in self.running:
            grant = grants.get(live.request_id)
            if grant is None:
                continue
            tokens, finish = self._take_in(live, grant, output)
            if tokens:
                emitted.append((live.request_id, tokens))
            if finish is not None:
                finishes.append(finish)
        if finishes:
            self.running = [live for live in self.running if live.status is Status.RUNNING]
        return StepResult(tuple(emitted), tuple(finishes))

    def _serve_running(self, step: _Step) -> None:
        """Let running requests catch up, in order of admission (RUN-1)."""
        index = 0
        while index < len(self.running) and step.budget > 0:
            live = self.running[index]
            demand = len(live.tokens) + len(live.drafts) - live.computed
            tokens = self._chunk(demand, step.budget)
            tokens = min(tokens, self.config.max_model_len - live.computed)
            encoding = self.encoder_cache.choose(live, live.computed, tokens, step.encoder_budget)
            if encoding.tokens == 0:
                # Not strictly first come, first served: others may still have something to do (RUN-5).
                index += 1
                continue
            taken = self._take_or_preempt(live, encoding.tokens, step)
            if taken is None:
                return
            index += 1
            self._grant(step, live, encoding, taken)

    def _take_or_preempt(self, live: LiveRequest, tokens: int, step: _Step) -> list[int] | None:
        """Blocks for a running request; None if it had to be preempted itself (RUN-6, PRE-1)."""
        while True:
            taken = self.kv_cache.allocate(live, tokens)
            if taken is not None:
                return taken
            victim = self.running.pop()
            self._preempt(victim)
            step.preempted.append(victim.request_id)
            if victim is live:
                return None

    def _preempt(self, victim: LiveRequest) -> None:
        """Back to the front of the queue without blocks, to be computed anew (PRE-3, PRE-7)."""
        self.kv_cache.release(victim)
        self.encoder_cache.release_all(victim)
        victim.computed = 0
        victim.status = Status.PREEMPTED
        self.waiting.push_front(victim)

    def _admit_waiting(self, step: _Step) -> None:
        """Admit from the front until something that only time can give is missing (ADM-2)."""
        adapters = {live.request.lora_id for live in self.running if live.request.lora_id}
        skipped: list[LiveRequest] = []
        while self.waiting and step.budget > 0:
            if len(self.running) >= self.config.max_num_seqs:
                break
            live = self.waiting.front()
            if self._must_skip(live, adapters):
                skipped.append(self.waiting.pop_front())
                continue
            if not self._admit(live, step):
                break
            if live.request.lora_id:
                adapters.add(live.request.lora_id)
        self.waiting.put_back(skipped)

    def _must_skip(self, live: LiveRequest, adapters: set[int]) -> bool:
        """Whether others may overtake this request for now (ADM-3)."""
        if live.status is Status.WAITING_FOR_GRAMMAR:
            if not live.grammar_is_ready:
                return True
            live.status = Status.WAITING
        adapter = live.request.lora_id
        if adapter == 0 or adapter in adapters:
            return False
        return len(adapters) >= self.config.max_loras

    def _admit(self, live: LiveRequest, step: _Step) -> bool:
        """Admit the front of the queue; False, and no change, if it does not fit (ADM-4 to ADM-13)."""
        hits = self.kv_cache.lookup(live)
        hit_tokens = len(hits) * self.config.block_size
        external = max(0, live.request.external_tokens - hit_tokens)
        start = hit_tokens + external
        tokens = self._chunk(len(live.tokens) - start, step.budget)
        encoding = self.encoder_cache.choose(live, start, tokens, step.encoder_budget)
        if encoding.tokens == 0:
            return False
        if self.kv_cache.allocate(live, external + encoding.tokens, hits) is None:
            return False
        self.waiting.pop_front()
        self.running.append(live)
        live.computed = start
        # The old status still tells a new request from a resumed one.
        self._grant(step, live, encoding, live.table, external)
        live.status = Status.RUNNING
        return True

    def _chunk(self, demand: int, budget: int) -> int:
        """How many tokens of a demand fit this step (RUN-4, ADM-8)."""
        threshold = self.config.long_prefill_token_threshold
        if 0 < threshold < demand:
            demand = threshold
        return min(demand, budget)

    def _grant(self, step: _Step, live: LiveRequest, encoding: Encoding, blocks: list[int], external: int = 0) -> None:
        """Enter a decision in the plan, charge the budgets and count the tokens (RUN-8, BUD-5)."""
        start = live.computed
        end = start + encoding.tokens
        grant = Grant(
            request_id=live.request_id,
            admission=_ADMISSION_OF[live.status],
            start=start,
            tokens=encoding.tokens,
            blocks=tuple(blocks),
            drafts=live.schedule_drafts(end),
            items=encoding.items,
            external=external,
        )
        step.grants.append(grant)
        step.budget -= encoding.tokens
        step.encoder_budget = encoding.budget
        self.encoder_cache.store(live, encoding.items)
        live.computed = end

    def _common_prefix_blocks(self) -> int:
        """How many leading blocks all running requests share (OUT-5)."""
        if not self.running:
            return 0
        table = self.running[0].table
        if len(self.running) == 1:
            # Who runs alone shares with nobody: no need to walk a long table in every step.
            return len(table)
        return self.kv_cache.pool.shared_prefix(table, len(self.running))

    def _take_in(self, live: LiveRequest, grant: Grant, output: ModelOutput) -> tuple[tuple[int, ...], Finish | None]:
        """One request's share of a commit: its new tokens up to a stop, and its end (UPD-3, UPD-4)."""
        sampled = output.sampled.get(live.request_id, ())
        if grant.drafts:
            # Of m drafts, all but the accepted ones were computed in vain (SPEC-4).
            rejected = len(grant.drafts) + 1 - len(sampled)
            live.computed -= rejected
        self.encoder_cache.release_computed(live)
        if self.config.num_speculative_tokens > 0:
            live.drafts = tuple(output.drafts.get(live.request_id, ()))
        for count, token in enumerate(sampled, 1):
            live.tokens.append(token)
            finish = finish_after(live, token, self.config)
            if finish is not None:
                # At once: requests later in the list, and the next step, find the blocks free (UPD-7).
                self._end(live)
                return tuple(sampled[:count]), finish
        return tuple(sampled), None

    def _end(self, live: LiveRequest) -> None:
        """Free all that a request holds and forget it (FIN-2)."""
        live.status = Status.FINISHED
        self.kv_cache.release(live)
        self.kv_cache.forget(live)
        self.encoder_cache.release_all(live)
        del self.live[live.request_id]
        self._finished.add(live.request_id)
