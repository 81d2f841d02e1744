"""The shapes of answers: what of a value is not as `conformance.protocol` declares it.

Types are compared, never asked for by isinstance: a subclass could do anything when it is read.  Whoever takes
the first problem of an answer calls code of the adapter, its `__repr__` for one, and is to be guarded.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator

from spec.observer import Inspection
from spec.vocabulary import Admission, Finish, FinishReason, Grant, StepPlan, StepResult


def factory_problems(scheduler: object) -> Iterator[str]:
    for method in ("add", "abort", "schedule", "commit"):
        if not callable(getattr(scheduler, method, None)):
            yield f"{_short(scheduler)}, which has no {method}()"


def reset_problems(done: object) -> Iterator[str]:
    if type(done) is not bool:
        yield f"{_short(done)}, not a bool"


def plan_problems(plan: object) -> Iterator[str]:
    if type(plan) is not StepPlan:
        yield f"{_short(plan)}, not a StepPlan"
        return
    if type(plan.grants) is not tuple:
        yield f"grants of {_short(plan.grants)}, not a tuple"
        return
    for grant in plan.grants:
        if type(grant) is not Grant:
            yield f"a grant {_short(grant)}, not a Grant"
            return
        if (
            type(grant.request_id) is not str
            or type(grant.start) is not int
            or type(grant.tokens) is not int
            or type(grant.external) is not int
            or type(grant.admission) is not Admission
        ):
            yield f"a grant with a field of the wrong type: {_short(grant)}"
            return
        if grant.start < 0 or grant.external < 0 or grant.external > grant.start:
            yield f"a grant with an impossible position: {_short(grant)}"
        for name in ("blocks", "drafts", "items"):
            numbers = getattr(grant, name)
            if type(numbers) is not tuple or any(type(n) is not int or n < 0 for n in numbers):
                yield f"{name} of {grant.request_id} that are not whole numbers: {_short(numbers)}"
    for name, ids in (("preempted", plan.preempted), ("finished", plan.finished)):
        if type(ids) is not tuple or any(type(i) is not str for i in ids):
            yield f"{name} of {_short(ids)}, not a tuple of request ids"
    if type(plan.freed_items) is not tuple or any(not _is_pair(e, str, int) for e in plan.freed_items):
        yield f"freed_items of {_short(plan.freed_items)}, not (request id, item) pairs"
    if plan.common_prefix_blocks is not None and type(plan.common_prefix_blocks) is not int:
        yield f"common_prefix_blocks of {_short(plan.common_prefix_blocks)}, not a whole number"


def result_problems(result: object) -> Iterator[str]:
    if type(result) is not StepResult:
        yield f"{_short(result)}, not a StepResult"
        return
    if type(result.emitted) is not tuple or any(not _is_pair(e, str, tuple) for e in result.emitted):
        yield f"emitted of {_short(result.emitted)}, not (request id, tokens) pairs"
        return
    for request_id, tokens in result.emitted:
        if any(type(token) is not int for token in tokens):
            yield f"tokens of {request_id} that are not whole numbers: {_short(tokens)}"
    if type(result.finished) is not tuple:
        yield f"finished of {_short(result.finished)}, not a tuple"
        return
    for end in result.finished:
        if type(end) is not Finish or type(end.reason) is not FinishReason:
            yield f"an end {_short(end)}, not a Finish"
        elif type(end.request_id) is not str or not (end.stop_token is None or type(end.stop_token) is int):
            yield f"an end with a field of the wrong type: {_short(end)}"


def inspection_problems(seen: object, num_blocks: int) -> Iterator[str]:
    if type(seen) is not Inspection:
        yield f"{_short(seen)}, not an Inspection"
        return
    for name in ("running", "waiting", "leftovers"):
        if not _is_tuple_of(str, getattr(seen, name)):
            yield f"{name} of {_short(getattr(seen, name))}, not a tuple of texts"
    if type(seen.free_blocks) is not int:
        yield f"free_blocks of {_short(seen.free_blocks)}, not a whole number"
    if seen.encoder_free is not None and type(seen.encoder_free) is not int:
        yield f"encoder_free of {_short(seen.encoder_free)}, not a whole number"
    if seen.free_order is not None and not _is_tuple_of(int, seen.free_order):
        yield f"free_order of {_short(seen.free_order)}, not a tuple of blocks"
    for name, of, to in (("computed", str, int), ("refs", int, int), ("keys", int, None), ("tables", str, None)):
        if not _is_dict_of(of, to, getattr(seen, name)):
            yield f"{name} of {_short(getattr(seen, name))}, not a dict of the declared types"
            return
    for blocks in (seen.refs, seen.keys):
        if blocks and not (min(blocks) >= 0 and max(blocks) < num_blocks):
            yield f"block {min(blocks) if min(blocks) < 0 else max(blocks)}, of {num_blocks}"
    for block, key in seen.keys.items():
        if hash(key) is None or not operator.eq(key, key):
            yield f"a key of block {block} that does not equal itself: {_short(key)}"
    for request_id, table in seen.tables.items():
        if type(table) not in (tuple, list) or not _all_of(int, table):
            yield f"a table of {request_id} that is not a sequence of blocks: {_short(table)}"


def _all_of(kind: type, values: Iterable[object]) -> bool:
    return set(map(type, values)) <= {kind}


def _is_tuple_of(kind: type, value: object) -> bool:
    return type(value) is tuple and _all_of(kind, value)


def _is_dict_of(key: type, kind: type | None, value: object) -> bool:
    return type(value) is dict and _all_of(key, value) and (kind is None or _all_of(kind, value.values()))


def _is_pair(value: object, first: type, second: type) -> bool:
    return type(value) is tuple and len(value) == 2 and type(value[0]) is first and type(value[1]) is second


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # a hostile __repr__ must not become our traceback
        text = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
    return text if len(text) <= 200 else text[:197] + "..."
