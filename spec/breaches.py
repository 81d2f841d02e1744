"""How a breach of each law is seen: one check for each law and moment, which yields a finding for everything wrong.

A finding is a signature, which is stable and names the kind of breach, and a message with the numbers.
`laws` says which check belongs to which law.
"""

from __future__ import annotations

from collections.abc import Iterator

from spec.formulas import ceil_div, longest_footprint
from spec.observer import Inspection, Observer, Overtaking, ResultSeen, StepSeen
from spec.vocabulary import RESERVED_BLOCK, Admission, Request, Status, StepPlan, StepResult

Finding = tuple[str, str]


# --- tokens --------------------------------------------------------------------------------------


def budget(o: Observer, step: StepSeen) -> Iterator[Finding]:
    total = 0
    for grant, *_ in step.rows:
        total += grant.tokens
        if grant.tokens < 1:
            yield "empty grant", f"{grant.request_id} is scheduled with {grant.tokens} tokens"
    if total > o.config.max_num_batched_tokens:
        yield "over budget", f"{total} tokens scheduled, budget {o.config.max_num_batched_tokens}"
    if o.config.max_num_encoder_input_tokens:
        encoder = sum(seen.request.items[i].length for grant, seen, *_ in step.rows for i in grant.items)
        if encoder > o.config.max_num_encoder_input_tokens:
            yield "over encoder budget", f"{encoder} encoder tokens, budget {o.config.max_num_encoder_input_tokens}"


def seats(o: Observer, step: StepSeen) -> Iterator[Finding]:
    if len(o.running) > o.config.max_num_seqs:
        yield "too many running", f"{len(o.running)} requests run, {o.config.max_num_seqs} seats"


def length(o: Observer, step: StepSeen) -> Iterator[Finding]:
    longest = o.config.max_model_len
    for grant, _, _, _, _, end in step.rows:
        if end > longest:
            yield "position", f"{grant.request_id} computes up to position {end - 1}, model length {longest}"
    most_blocks = ceil_div(longest, o.config.block_size)
    for grant, seen, *_ in step.taking:
        if len(seen.table) > most_blocks:
            yield "table", f"{grant.request_id} holds {len(seen.table)} blocks, at most {most_blocks} fit"


def contiguous(o: Observer, step: StepSeen) -> Iterator[Finding]:
    for grant, _, status, computed, _, _ in step.rows:
        if grant.start != computed and status is Status.RUNNING:
            yield "gap", f"{grant.request_id} starts at {grant.start}, {computed} tokens are computed"


def last(o: Observer, step: StepSeen) -> Iterator[Finding]:
    for grant, _, _, _, known, end in step.rows:
        if end <= known and not grant.drafts:
            continue
        if grant.start >= known:
            yield "nothing known", f"{grant.request_id} starts at {grant.start} of {known} known tokens"
        elif end - known > len(grant.drafts):
            beyond = end - known - len(grant.drafts)
            yield "unknown tokens", f"{grant.request_id} computes {beyond} tokens that nobody knows"
        elif end - known < len(grant.drafts):
            drafts = list(grant.drafts)
            yield "too many drafts", f"{grant.request_id} names drafts {drafts}, {max(end - known, 0)} are computed"


# --- blocks --------------------------------------------------------------------------------------


def pool(o: Observer, step: StepSeen) -> Iterator[Finding]:
    for grant, *_ in step.taking:
        for block in grant.blocks:
            if block == RESERVED_BLOCK:
                yield "reserved block", f"{grant.request_id} gets block {block}"
            elif block >= o.config.num_blocks:
                yield "no such block", f"{grant.request_id} gets block {block} of {o.config.num_blocks}"
    if len(o.holders) > o.config.num_blocks - 1:
        yield "over-allocated", f"{len(o.holders)} blocks held, {o.config.num_blocks - 1} usable"


def count_step(o: Observer, step: StepSeen) -> Iterator[Finding]:
    for request_id, block in step.handed_out_twice:
        yield "handed out while held", f"{request_id} gets block {block} as new, but a live request holds it"


def count_inspection(o: Observer, seen: Inspection) -> Iterator[Finding]:
    for block, refs in seen.refs.items():
        if refs != o.holders.get(block, 0) and block != RESERVED_BLOCK:
            yield "references", f"block {block} counts {refs} references, {o.holders.get(block, 0)} live tables hold it"
    free = o.config.num_blocks - 1 - len(o.holders)
    if seen.free_blocks != free:
        yield "free blocks", f"{seen.free_blocks} blocks count as free, {free} are held by nobody"
    if seen.free_order is not None:
        queue = set(seen.free_order)
        if len(queue) != len(seen.free_order):
            yield "twice in the free queue", f"free queue {list(seen.free_order)}"
        due = {block for block in range(RESERVED_BLOCK + 1, o.config.num_blocks) if block not in o.holders}
        if queue != due:
            yield "free queue", f"in the free queue but not free: {sorted(queue - due)}, missing: {sorted(due - queue)}"


def atomic(o: Observer, seen: Inspection) -> Iterator[Finding]:
    for request_id, table in seen.tables.items():
        request = o.live.get(request_id)
        expected = [] if request is None else request.table
        if list(table) != expected:
            yield "table", f"{request_id} holds blocks {list(table)}, its plans gave it {expected}"
    for request_id, computed in seen.computed.items():
        if request_id in o.live and computed != o.live[request_id].computed:
            due = o.live[request_id].computed
            yield "computed", f"{request_id} counts {computed} computed tokens, its plans computed {due}"
    for request_id, live in o.live.items() if seen.whole else ():
        if live.table and request_id not in seen.tables:
            yield "no table", f"{request_id} has no table, its plans gave it blocks {live.table}"


def cover(o: Observer, step: StepSeen) -> Iterator[Finding]:
    size, lookahead, longest = o.config.block_size, o.config.lookahead, o.config.max_model_len
    for grant, seen, _, _, _, end in step.rows:
        slots = len(seen.table) * size
        if slots < end:
            yield "no slot", f"{grant.request_id} computes up to position {end - 1} with {slots} slots"
        elif slots < end + lookahead and slots < longest:
            yield "no lookahead", f"{grant.request_id} has {slots} slots for {end} tokens and {lookahead} ahead"


def write(o: Observer, step: StepSeen) -> Iterator[Finding]:
    for request_id, block in step.shared_writes:
        yield "shared block", f"{request_id} writes block {block}, which another live request holds"


def content(o: Observer, step: StepSeen) -> Iterator[Finding]:
    size = o.config.block_size
    for grant, seen, _, _, known, _ in step.admitted:
        hit_tokens = min(grant.start - grant.external, known)
        for index, block in enumerate(seen.table[: seen.adopted]):
            due = seen.content(index, size, hit_tokens)
            held = o.shadow.read(block)
            if held.letters[: len(due.letters)] == due.letters and held.prefix == due.prefix:
                continue
            if len(held.letters) < len(due.letters):
                yield "unwritten slot", f"{grant.request_id} reads block {block}, which was not written completely"
            else:
                yield "foreign prefix", f"{grant.request_id} reads block {block}, which holds another prefix"


def key(o: Observer, seen: Inspection) -> Iterator[Finding]:
    for block, key in seen.keys.items():
        held = o.shadow.read(block)
        if len(held.letters) < o.config.block_size:
            yield "unwritten slot", f"block {block} is published, but was not written completely"
        elif o.meanings.setdefault(key, held.identity) != held.identity:
            yield "foreign prefix", f"block {block} is published under a key that named other content before"


# --- encoder items -------------------------------------------------------------------------------


def embed(o: Observer, step: StepSeen) -> Iterator[Finding]:
    if not o.config.encoder_cache_size:
        return
    for grant, seen, _, _, _, end in step.rows:
        for index, item in enumerate(seen.request.items):
            overlaps = item.offset < end and item.end > grant.start
            if overlaps and (grant.request_id, index) not in o.cached:
                yield "not computed", f"{grant.request_id} computes tokens of item {index}, which is not cached"


def whole(o: Observer, step: StepSeen) -> Iterator[Finding]:
    if not o.config.disable_chunked_mm_input:
        return
    for grant, seen, _, _, _, end in step.rows:
        for index, item in enumerate(seen.request.items):
            if grant.start <= item.offset < end < item.end:
                yield "cut", f"{grant.request_id} stops at {end}, inside item {index} at {item.offset}..{item.end}"


# --- requests ------------------------------------------------------------------------------------


_LEGAL_BEFORE = {Admission.RUNNING: Status.RUNNING, Admission.NEW: Status.WAITING, Admission.RESUMED: Status.PREEMPTED}


def state_plan(o: Observer, plan: StepPlan) -> Iterator[Finding]:
    seen: set[str] = set()
    preempted = set(plan.preempted)
    if len(preempted) != len(plan.preempted):
        yield "preempted twice", f"preempted {list(plan.preempted)}"
    for request_id in plan.preempted:
        if request_id not in o.running:
            yield "preempted but not running", f"{request_id} is preempted"
    for grant in plan.grants:
        live = o.live.get(grant.request_id)
        if live is None:
            yield "unknown request", f"{grant.request_id} is scheduled, but is not live"
        elif grant.request_id in seen:
            yield "scheduled twice", f"{grant.request_id} stands twice in the plan"
        elif grant.request_id not in preempted and live.status is not _LEGAL_BEFORE[grant.admission]:
            yield "illegal transition", f"{grant.request_id} is scheduled as {grant.admission} while {live.status}"
        elif not live.grammar_ready:
            yield "grammar not ready", f"{grant.request_id} is scheduled before its grammar is ready"
        elif grant.items and max(grant.items) >= len(live.request.items):
            yield "unknown item", f"{grant.request_id} has no encoder item {max(grant.items)}"
        seen.add(grant.request_id)


def state_inspection(o: Observer, seen: Inspection) -> Iterator[Finding]:
    if not seen.whole:
        return
    queued = [*seen.running, *seen.waiting]
    if len(set(queued)) != len(queued):
        yield "two queues", f"running {list(seen.running)}, waiting {list(seen.waiting)}"
    if set(seen.running) != set(o.running):
        yield "running", f"{list(seen.running)} run, {list(o.running)} were admitted and did not end"
    if set(seen.waiting) != {s.request.request_id for s in o.waiting}:
        yield "waiting", f"{list(seen.waiting)} wait, expected {[s.request.request_id for s in o.waiting]}"


def preempted(o: Observer, plan: StepPlan) -> Iterator[Finding]:
    if plan.preempted:
        for grant in plan.grants:
            if grant.request_id in plan.preempted:
                yield "scheduled too", f"{grant.request_id} is preempted and gets {grant.tokens} tokens in one step"


def order(o: Observer, step: StepSeen) -> Iterator[Finding]:
    if step.preempted:
        count = len(step.preempted)
        newest = step.running_before[: -count - 1 : -1]
        if list(step.plan.preempted) != newest:
            yield "victim", f"preempted {list(step.plan.preempted)}, the newest running are {newest}"
    for overtaking in step.overtakings:
        if not _may_be_passed(o, overtaking):
            first, second = overtaking.passed.request.request_id, overtaking.admitted.request.request_id
            yield "overtaken", f"{second} is admitted past {first}, which waits in front of it"


def _may_be_passed(o: Observer, overtaking: Overtaking) -> bool:
    passed, adapters = overtaking.passed, overtaking.adapters
    adapter = passed.request.lora_id
    adapters_full = len(adapters) >= o.config.max_loras and adapter not in adapters
    return not passed.grammar_ready or (adapter != 0 and adapters_full)


def caps_step(o: Observer, step: StepSeen) -> Iterator[Finding]:
    if o.config.max_loras and len(adapters := o.adapters_in_use()) > o.config.max_loras:
        yield "adapters", f"adapters {sorted(adapters)} run, cap {o.config.max_loras}"
    for request_id, index in step.freed_uncached:
        yield "freed item", f"item {index} of {request_id} is reported as freed, but was not cached"
    if o.encoder_used > o.config.encoder_cache_size:
        yield "encoder cache", f"{o.encoder_used} encoder tokens cached, capacity {o.config.encoder_cache_size}"


def caps_inspection(o: Observer, seen: Inspection) -> Iterator[Finding]:
    if seen.encoder_free is not None and not 0 <= seen.encoder_free <= o.config.encoder_cache_size:
        yield "encoder cache", f"{seen.encoder_free} encoder slots free of {o.config.encoder_cache_size}"


# --- results -------------------------------------------------------------------------------------


def output_answer(o: Observer, step: StepSeen, result: StepResult) -> Iterator[Finding]:
    due = {row[0].request_id for row in step.rows}
    for request_id, _ in result.emitted:
        if request_id not in due:
            yield "stranger", f"tokens are delivered for {request_id}, which was not scheduled, or twice"
        due.discard(request_id)


def output(o: Observer, seen: ResultSeen) -> Iterator[Finding]:
    for row in seen.settled:
        if row.emitted != row.sampled[: row.due.tokens]:
            due = list(row.sampled[: row.due.tokens])
            yield "tokens", f"{row.seen.request.request_id} delivers {list(row.emitted)}, due are {due}"


def finish_answer(o: Observer, step: StepSeen, result: StepResult) -> Iterator[Finding]:
    ended: set[str] = set()
    for end in result.finished:
        if end.request_id not in o.live or end.request_id in ended:
            yield "not live", f"{end.request_id} finishes, but is not live, or finishes twice"
        ended.add(end.request_id)


def finish(o: Observer, seen: ResultSeen) -> Iterator[Finding]:
    ends = {end.request_id: end for end in seen.result.finished}
    for row in seen.settled:
        request_id = row.seen.request.request_id
        end = ends.pop(request_id, None)
        reason, stop_token = (None, None) if end is None else (end.reason, end.stop_token)
        if (reason, stop_token) != (row.due.reason, row.due.stop_token):
            found, due = _told(reason, stop_token), _told(row.due.reason, row.due.stop_token)
            kinds = f"{_told(reason, None)} for {_told(row.due.reason, None)}"
            yield kinds, f"{request_id} after {list(row.sampled)}: {found}, due is {due}"
    for request_id in ends:
        yield "without a token", f"{request_id} finishes in a step that sampled nothing for it"


def _told(reason: object, stop_token: int | None) -> str:
    return f"{reason or 'goes on'}" + (f" at token {stop_token}" if stop_token is not None else "")


def finish_step(o: Observer, step: StepSeen) -> Iterator[Finding]:
    if list(step.plan.finished) != sorted(step.ended):
        yield (
            "flush",
            f"the plan reports {list(step.plan.finished)} as ended, since the last one {sorted(step.ended)} did",
        )


def idle(o: Observer, seen: Inspection) -> Iterator[Finding]:
    for entry in seen.leftovers:
        map_name = entry.partition(":")[0]
        yield f"left in {map_name}", f"{entry}, but this request is gone"
    if o.live:
        return
    if seen.free_blocks != o.config.num_blocks - 1:
        yield "blocks", f"nothing is live, {seen.free_blocks} of {o.config.num_blocks - 1} blocks are free"
    if seen.encoder_free is not None and seen.encoder_free != o.config.encoder_cache_size:
        yield "encoder cache", f"nothing is live, {seen.encoder_free} of {o.config.encoder_cache_size} slots are free"


# --- progress ------------------------------------------------------------------------------------


def progress_add(o: Observer, request: Request) -> Iterator[Finding]:
    footprint = longest_footprint(request, o.config)
    if footprint > o.config.num_blocks - 1:
        yield (
            "unservable accepted",
            f"{request.request_id} needs up to {footprint} blocks alone, {o.config.num_blocks - 1} are usable",
        )


def progress(o: Observer, step: StepSeen) -> Iterator[Finding]:
    if step.rows or (step.preempted and o.cached):
        return
    runnable = [i for i, s in o.live.items() if s.grammar_ready]
    if runnable:
        yield "stall", f"no token is scheduled, although {runnable[:5]} could run"


def starve(o: Observer, step: StepSeen) -> Iterator[Finding]:
    bound = 2 * o.config.max_model_len + 2
    if o.head is not None and o.stale_steps > bound:
        yield "no progress", f"{o.head[0]} is first in line and computed nothing new in {o.stale_steps} steps"


def state_add(o: Observer, request: Request) -> Iterator[Finding]:
    if request.request_id in o.live:
        yield "duplicate id accepted", f"{request.request_id} is added while a request of that id is live"
