"""Where an implementation decides otherwise than the spec: the first difference, named by rule.

Tables of (field, rule): the field of a plan in which two decisions first part, and the rule to look up.
"""

from __future__ import annotations

from collections.abc import Iterator

from spec.laws import Violation
from spec.observer import Inspection
from spec.state import State
from spec.vocabulary import Admission, Grant, StepPlan, StepResult

RUNNING_FIELDS = (
    ("start", "ADV-1"),
    ("tokens", "RUN-4"),
    ("drafts", "SPEC-2"),
    ("items", "ENC-2"),
    ("external", "ADM-5"),
    ("blocks", "ALLOC-A"),
)
ADMITTED_FIELDS = (
    ("external", "ADM-5"),
    ("start", "CACHE-1"),
    ("tokens", "ADM-8"),
    ("drafts", "SPEC-2"),
    ("items", "ENC-2"),
    ("blocks", "ALLOC-A"),
)
PLAN_FIELDS = (
    ("finished", "FIN-3"),
    ("freed_items", "ENC-4"),
    ("common_prefix_blocks", "OUT-5"),
)


class Renaming:
    """A bijection between the spec's blocks and the implementation's, kept while they decide alike.

    For class `equivalent`: a block that both take in the same place is the same block from then on, until
    either takes it anew.
    """

    def __init__(self) -> None:
        self._of_spec: dict[int, int] = {}
        self._to_spec: dict[int, int] = {}

    def bind(self, spec: Grant, found: Grant, block_size: int) -> bool:
        """Whether the blocks of two grants correspond; binds those that are newly taken."""
        if len(spec.blocks) != len(found.blocks):
            return False
        hits = 0 if spec.admission is Admission.RUNNING else (spec.start - spec.external) // block_size
        for index, (mine, theirs) in enumerate(zip(spec.blocks, found.blocks, strict=True)):
            if index < hits:
                if self._of_spec.get(mine) != theirs:
                    return False
                continue
            self._to_spec.pop(self._of_spec.pop(mine, -1), None)
            self._of_spec.pop(self._to_spec.pop(theirs, -1), None)
            self._of_spec[mine] = theirs
            self._to_spec[theirs] = mine
        return True


def compare_plans(spec: StepPlan, found: StepPlan, renaming: Renaming | None, block_size: int) -> Iterator[Violation]:
    """Differences between two plans, most telling first; `renaming` is None where ids must be identical."""
    if spec.preempted != found.preempted:
        yield Violation("PRE-1", "preempted", f"spec preempts {list(spec.preempted)}, found {list(found.preempted)}")
    for mine, theirs in zip(spec.grants, found.grants, strict=False):
        if mine == theirs and renaming is None:
            continue
        if mine.request_id != theirs.request_id:
            message = f"spec schedules {mine.request_id}, found {theirs.request_id}"
            yield Violation(_order_rule(mine, theirs), "order", message)
            return
        yield from _compare_grants(mine, theirs, renaming, block_size)
    yield from _compare_lengths(spec, found)
    for name, rule in PLAN_FIELDS:
        mine_value, their_value = getattr(spec, name), getattr(found, name)
        if mine_value != their_value and their_value is not None:
            yield Violation(rule, name, f"{name}: spec {mine_value}, found {their_value}")


def _compare_grants(mine: Grant, theirs: Grant, renaming: Renaming | None, block_size: int) -> Iterator[Violation]:
    who = mine.request_id
    if mine.admission is not theirs.admission:
        yield Violation("ADM-13", "admission", f"{who}: spec {mine.admission}, found {theirs.admission}")
    for name, rule in RUNNING_FIELDS if mine.admission is Admission.RUNNING else ADMITTED_FIELDS:
        if name == "blocks" and renaming is not None:
            if not renaming.bind(mine, theirs, block_size):
                yield Violation(rule, name, f"{who}: blocks {mine.blocks} of the spec are not {theirs.blocks} renamed")
            continue
        mine_value, their_value = getattr(mine, name), getattr(theirs, name)
        if mine_value != their_value:
            yield Violation(rule, name, f"{who}: {name}: spec {mine_value}, found {their_value}")


def _compare_lengths(spec: StepPlan, found: StepPlan) -> Iterator[Violation]:
    if len(spec.grants) == len(found.grants):
        return
    more, who = (spec, "the spec") if len(spec.grants) > len(found.grants) else (found, "the implementation")
    extra = more.grants[min(len(spec.grants), len(found.grants))]
    rule = "RUN-5" if extra.admission is Admission.RUNNING else "ADM-12"
    yield Violation(rule, "only one side", f"only {who} schedules {extra.request_id} ({extra.admission})")


def _order_rule(mine: Grant, theirs: Grant) -> str:
    return "RUN-1" if Admission.RUNNING in (mine.admission, theirs.admission) else "Q-3"


def compare_results(spec: StepResult, found: StepResult) -> Iterator[Violation]:
    """Differences in what is delivered."""
    if spec.emitted != found.emitted:
        yield Violation("UPD-4", "emitted", f"spec delivers {list(spec.emitted)}, found {list(found.emitted)}")
    if spec.finished != found.finished:
        yield Violation("FIN-1", "finished", f"spec ends {list(spec.finished)}, found {list(found.finished)}")


def compare_inside(state: State, found: Inspection) -> Iterator[Violation]:
    """Differences inside, block id by block id; only what the inspection covers is compared."""
    if found.encoder_free is not None and state.encoder_free != found.encoder_free:
        message = f"encoder space: spec {state.encoder_free}, found {found.encoder_free}"
        yield Violation("ENC-4", "encoder space", message)
    if found.whole:
        yield from _compare_queues(state, found)
    for block, refs in found.refs.items():
        if block and refs != state.pool.refs[block]:
            yield Violation("BLK-4", "references", f"block {block}: spec {state.pool.refs[block]}, found {refs}")
        if (block in found.keys) != (block in state.pool.key_of):
            missing = block in state.pool.key_of
            where = "the spec" if missing else "the implementation"
            signature = "not published" if missing else "published beyond the spec"
            yield Violation("CACHE-5", signature, f"block {block} carries a prefix key only in {where}")


def _compare_queues(state: State, found: Inspection) -> Iterator[Violation]:
    sides = (
        ("ST-3", "running", tuple(live.request.request_id for live in state.running), found.running),
        ("Q-3", "waiting", tuple(live.request.request_id for live in state.waiting), found.waiting),
        ("FREE-1", "free queue", tuple(state.pool.free), found.free_order),
    )
    for rule, name, mine, theirs in sides:
        if mine != theirs:
            yield Violation(rule, name, f"{name}: spec {_short(mine)}, found {_short(theirs)}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) < 160 else text[:157] + "..."
