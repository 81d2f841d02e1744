"""Hostile answers: what a method makes of the honest answer, and the verdict that it must get."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from conformance.protocol import Inspection
from spec.vocabulary import Finish, FinishReason, StepPlan, StepResult

Row = tuple[str, Callable[[Any], Any], str, str]
"""(name, what becomes of the answer, law, words of the verdict)."""


# --- values that fight back ----------------------------------------------------------------------


class Evil:
    """A value of which nothing can be read."""

    def __getattribute__(self, name: str) -> Any:
        raise ValueError("hands off")

    def __repr__(self) -> str:
        raise SystemExit("repr")

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        raise ValueError("incomparable")

    def __hash__(self) -> int:
        return 1


class Slow:
    """A value that takes for ever to show."""

    def __repr__(self) -> str:
        while True:
            pass


class EvilPlan(StepPlan):
    """A plan that cannot be read."""

    @property
    def grants(self) -> Any:
        raise ValueError("hands off")


class Number(int):
    """A number that looks like one, as those of NumPy do."""


class Text(str):
    """A text that looks like one."""


# --- plans ---------------------------------------------------------------------------------------


def _grant(**changes: Any) -> Callable[[StepPlan], StepPlan]:
    """Changes the first grant of every plan that has one; a callable is given the old value."""

    def change(plan: StepPlan) -> StepPlan:
        if not plan.grants:
            return plan
        first = plan.grants[0]
        values = {name: value(getattr(first, name)) if callable(value) else value for name, value in changes.items()}
        return plan._replace(grants=(first._replace(**values), *plan.grants[1:]))

    return change


def _plan(**changes: Any) -> Callable[[StepPlan], StepPlan]:
    return lambda plan: plan._replace(
        **{name: value(getattr(plan, name)) if callable(value) else value for name, value in changes.items()}
    )


PLANS: tuple[Row, ...] = (
    ("none", lambda plan: None, "ANSWER", "schedule() returned None, not a StepPlan"),
    ("tuple", lambda plan: tuple(plan), "ANSWER", "not a StepPlan"),
    ("evil", lambda plan: Evil(), "ANSWER", "reading what schedule() returned raised SystemExit"),
    ("evil-plan", lambda plan: EvilPlan(*plan), "ANSWER", "not a StepPlan"),
    ("slow", lambda plan: Slow(), "ANSWER", "reading what schedule() returned did not come back within"),
    ("class", lambda plan: StepPlan, "ANSWER", "not a StepPlan"),
    ("grants-list", _plan(grants=list), "ANSWER", "grants of ["),
    ("grants-none", _plan(grants=None), "ANSWER", "grants of None"),
    ("grant-tuple", _plan(grants=lambda grants: tuple(map(tuple, grants))), "ANSWER", "a grant ('a', "),
    ("preempted-text", _plan(preempted="ab"), "ANSWER", "preempted of 'ab'"),
    ("preempted-stranger", _plan(preempted=("nobody",)), "STATE", "nobody is preempted"),
    (
        "preempted-twice",
        lambda plan: plan._replace(grants=(), preempted=("b", "b")) if plan.grants else plan,
        "STATE",
        "preempted ['b', 'b']",
    ),
    ("finished-none", _plan(finished=None), "ANSWER", "finished of None"),
    ("finished-evil", _plan(finished=(Evil(),)), "ANSWER", "reading what schedule() returned raised SystemExit"),
    ("finished-stranger", _plan(finished=("nobody",)), "FINISH", "['nobody'] as ended"),
    ("freed-singles", _plan(freed_items=("a",)), "ANSWER", "freed_items of ('a',)"),
    ("common-prefix-nan", _plan(common_prefix_blocks=float("nan")), "ANSWER", "common_prefix_blocks of nan"),
    ("common-prefix-evil", _plan(common_prefix_blocks=Evil()), "ANSWER", "reading what schedule() returned"),
    ("grant-twice", _plan(grants=lambda grants: grants * 2), "STATE", "stands twice in the plan"),
    ("id-unknown", _grant(request_id="nobody"), "STATE", "nobody is scheduled, but is not live"),
    ("id-none", _grant(request_id=None), "ANSWER", "a grant with a field of the wrong type"),
    ("id-text-subclass", _grant(request_id=Text), "ANSWER", "a grant with a field of the wrong type"),
    ("tokens-negative", _grant(tokens=-1), "BUDGET", "is scheduled with -1 tokens"),
    ("tokens-zero", _grant(tokens=0), "BUDGET", "is scheduled with 0 tokens"),
    ("tokens-float", _grant(tokens=1.0), "ANSWER", "a grant with a field of the wrong type"),
    ("tokens-nan", _grant(tokens=float("nan")), "ANSWER", "a grant with a field of the wrong type"),
    ("tokens-true", _grant(tokens=True), "ANSWER", "a grant with a field of the wrong type"),
    ("tokens-text", _grant(tokens="4"), "ANSWER", "a grant with a field of the wrong type"),
    ("tokens-numpy-like", _grant(tokens=Number), "ANSWER", "a grant with a field of the wrong type"),
    ("tokens-huge", _grant(tokens=10**30), "BUDGET", "tokens scheduled, budget 8"),
    ("start-negative", _grant(start=-1), "ANSWER", "a grant with an impossible position"),
    ("start-huge", _grant(start=10**30), "LENGTH", "computes up to position"),
    ("start-none", _grant(start=None), "ANSWER", "a grant with a field of the wrong type"),
    ("external-beyond-start", _grant(external=5), "ANSWER", "a grant with an impossible position"),
    ("admission-text", _grant(admission="new"), "ANSWER", "a grant with a field of the wrong type"),
    ("blocks-none", _grant(blocks=None), "ANSWER", "blocks of"),
    ("blocks-list", _grant(blocks=list), "ANSWER", "blocks of"),
    ("blocks-negative", _grant(blocks=(-1,)), "ANSWER", "blocks of"),
    ("blocks-float", _grant(blocks=(1.5,)), "ANSWER", "blocks of"),
    ("blocks-missing", _grant(blocks=()), "COVER", "with 0 slots"),
    ("block-reserved", _grant(blocks=lambda blocks: (0, *blocks[1:])), "POOL", "gets block 0"),
    ("block-out-of-range", _grant(blocks=lambda blocks: (9, *blocks[1:])), "POOL", "gets block 9 of 9"),
    ("block-huge", _grant(blocks=lambda blocks: (10**30, *blocks[1:])), "POOL", "gets block 1000000"),
    ("block-twice", _grant(blocks=lambda blocks: blocks[:1] * 2), "COUNT", "as new, but a live request holds it"),
    ("items-unknown", _grant(items=(7,)), "STATE", "has no encoder item 7"),
    ("items-text", _grant(items=("0",)), "ANSWER", "items of"),
    ("drafts-none", _grant(drafts=None), "ANSWER", "drafts of"),
    ("drafts-invented", _grant(drafts=(1, 2, 3)), "LAST", "a names drafts [1, 2, 3], 0 are computed"),
)
"""What `schedule` makes of the plan of the reference."""


# --- results -------------------------------------------------------------------------------------


def _result(**changes: Any) -> Callable[[StepResult], StepResult]:
    return lambda result: result._replace(
        **{name: value(getattr(result, name)) if callable(value) else value for name, value in changes.items()}
    )


RESULTS: tuple[Row, ...] = (
    ("none", lambda result: None, "ANSWER", "commit() returned None, not a StepResult"),
    ("evil", lambda result: Evil(), "ANSWER", "reading what commit() returned raised SystemExit"),
    ("emitted-dict", _result(emitted=dict), "ANSWER", "emitted of {"),
    ("emitted-triples", _result(emitted=(("a", (1,), 2),)), "ANSWER", "emitted of (('a', (1,), 2),)"),
    ("emitted-lists", _result(emitted=(("a", [1]),)), "ANSWER", "emitted of (('a', [1]),)"),
    ("tokens-float", _result(emitted=(("a", (5.0,)),)), "ANSWER", "tokens of a that are not whole numbers"),
    ("tokens-true", _result(emitted=(("a", (True,)),)), "ANSWER", "tokens of a that are not whole numbers"),
    ("stranger", _result(emitted=(("nobody", (1,)),)), "OUTPUT", "delivered for nobody"),
    ("twice", _result(emitted=lambda emitted: emitted * 2), "OUTPUT", "for a, which was not scheduled, or twice"),
    ("nothing", _result(emitted=()), "OUTPUT", "a delivers [], due are [5]"),
    ("wrong-tokens", _result(emitted=(("a", (77,)), ("b", (5,)))), "OUTPUT", "a delivers [77], due are [5]"),
    ("finished-none", _result(finished=None), "ANSWER", "finished of None"),
    ("finished-ids", _result(finished=("a",)), "ANSWER", "an end 'a', not a Finish"),
    ("reason-text", _result(finished=(Finish("a", "stop"),)), "ANSWER", "not a Finish"),  # type: ignore[arg-type]
    (
        "id-list",
        _result(finished=(Finish(["a"], FinishReason.STOP),)),  # type: ignore[arg-type]
        "ANSWER",
        "field of the wrong type",
    ),
    (
        "stop-token-evil",
        _result(finished=(Finish("a", FinishReason.STOP, Evil()),)),  # type: ignore[arg-type]
        "ANSWER",
        "raised SystemExit",
    ),
    (
        "finish-stranger",
        _result(finished=(Finish("nobody", FinishReason.STOP),)),
        "FINISH",
        "nobody finishes, but is not live",
    ),
    (
        "finish-twice",
        _result(finished=(Finish("a", FinishReason.STOP),) * 2),
        "FINISH",
        "a finishes, but is not live, or finishes twice",
    ),
    (
        "finish-early",
        _result(finished=(Finish("a", FinishReason.STOP),)),
        "FINISH",
        "a after [5]: stop, due is goes on",
    ),
)
"""What `commit` makes of the result of the reference."""


# --- inspections ---------------------------------------------------------------------------------


def _inside(**changes: Any) -> Callable[[Inspection], Inspection]:
    return lambda seen: dataclasses.replace(
        seen, **{name: value(getattr(seen, name)) if callable(value) else value for name, value in changes.items()}
    )


INSPECTIONS: tuple[Row, ...] = (
    ("dict", dataclasses.asdict, "ANSWER", "not an Inspection"),
    ("evil", lambda seen: Evil(), "ANSWER", "reading what inspect() returned raised SystemExit"),
    ("running-none", _inside(running=None), "ANSWER", "running of None"),
    ("waiting-numbers", _inside(waiting=(1, 2)), "ANSWER", "waiting of (1, 2)"),
    ("running-stranger", _inside(running=("nobody",)), "STATE", "['nobody'] run"),
    ("computed-text", _inside(computed={"a": "4"}), "ANSWER", "computed of {'a': '4'}"),
    ("computed-huge", _inside(computed={"a": 10**30}), "ATOMIC", "a counts 1000000"),
    ("tables-none", _inside(tables=None), "ANSWER", "tables of None"),
    ("table-text", _inside(tables={"a": "12"}), "ANSWER", "a table of a that is not a sequence of blocks"),
    ("table-stranger", _inside(tables={"nobody": (1,)}), "ATOMIC", "nobody holds blocks [1]"),
    ("free-blocks-nan", _inside(free_blocks=float("nan")), "ANSWER", "free_blocks of nan"),
    ("refs-float", _inside(refs={1: 1.0}), "ANSWER", "refs of {1: 1.0}"),
    ("refs-out-of-range", _inside(refs={99: 0}), "ANSWER", "inspect() returned block 99, of 9"),
    ("refs-negative-block", _inside(refs={-1: 0}), "ANSWER", "inspect() returned block -1, of 9"),
    ("key-unhashable", _inside(keys={1: []}), "ANSWER", "raised TypeError: unhashable type"),
    (
        "key-evil",
        _inside(keys={1: Evil()}),
        "ANSWER",
        "reading what inspect() returned raised ValueError: incomparable",
    ),
    ("key-nan", _inside(keys={1: float("nan")}), "ANSWER", "a key of block 1 that does not equal itself"),
    ("free-order-text", _inside(free_order="123"), "ANSWER", "free_order of '123'"),
    ("encoder-free-text", _inside(encoder_free="2"), "ANSWER", "encoder_free of '2'"),
    ("leftovers-none", _inside(leftovers=None), "ANSWER", "leftovers of None"),
)
"""What `inspect` makes of the inspection of the reference."""
