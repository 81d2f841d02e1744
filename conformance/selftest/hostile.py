"""Hostile adapters: schedulers that answer as no scheduler should, and the verdict that each must get.

Each is the reference scheduler with one method replaced.  Tables of (name, what it does, law, words of the verdict).
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from conformance.adapters.reference import InspectedReference
from conformance.lockstep import Abort, Add, Event, GrammarReady, Reset, StepEvent
from conformance.model import Script
from conformance.protocol import CAPABILITIES, Implementation, Inspection
from spec.vocabulary import Config, EncoderItem, Finish, FinishReason, ModelOutput, Refused, Request, StepPlan, StepResult

CONFIG = Config(
    num_blocks=9,
    block_size=2,
    max_num_batched_tokens=8,
    max_num_seqs=2,
    max_model_len=12,
    num_speculative_tokens=1,
    max_num_encoder_input_tokens=2,
    encoder_cache_size=2,
)

EVENTS: tuple[Event, ...] = (
    Add(Request("a", (1, 9, 9, 2), 3, items=(EncoderItem(1, 2, 20),), needs_grammar=True), Script((5, 6, 7), ((1, 1),))),
    Add(Request("b", (1, 2, 3), 4), Script((5, 6, 7, 8), ((1, 0),))),
    GrammarReady("a"),
    StepEvent(),
    StepEvent(),
    StepEvent(),
    Abort("b"),
    StepEvent(),
    Reset(),
)
"""Calls every method, and the reference passes."""

METHODS = ("add", "abort", "grammar_ready", "reset_prefix_cache", "schedule", "commit", "inspect")


@dataclass(frozen=True)
class Hostile:
    """An adapter, the law under which it is judged, and the words that the verdict must contain."""

    name: str
    factory: Callable[[Config], Any]
    law: str
    words: tuple[str, ...]

    @property
    def implementation(self) -> Implementation:
        return Implementation(self.name, self.factory, frozenset(CAPABILITIES))


def _with(method: str, replacement: Callable[..., Any]) -> Callable[[Config], Any]:
    """A factory of reference schedulers with one method replaced."""
    return type("HostileReference", (InspectedReference,), {method: replacement})


def _changing(method: str, change: Callable[[Any], Any]) -> Callable[[Config], Any]:
    """A factory of reference schedulers of which one method answers something else."""

    def answer(self: InspectedReference, *arguments: Any) -> Any:
        return change(getattr(InspectedReference, method)(self, *arguments))

    return _with(method, answer)


# --- raising -------------------------------------------------------------------------------------


class Unspeakable(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise ValueError("not even its text")

    __repr__ = __str__


class Foreign(BaseException):
    """Not an Exception, as the outcomes of test frameworks are."""


def _raises_value_error(*_: object) -> None:
    raise ValueError("boom")


def _exits(*_: object) -> None:
    raise SystemExit(3)


def _recurses(*arguments: object) -> None:
    _recurses(*arguments)


def _raises_unspeakable(*_: object) -> None:
    raise Unspeakable


def _raises_foreign(*_: object) -> None:
    raise Foreign("from elsewhere")


def _raises_group(*_: object) -> None:
    raise ExceptionGroup("several", [ValueError("one"), KeyError("two")])


RAISING: tuple[tuple[str, Callable[..., None], str], ...] = (
    ("raises", _raises_value_error, "raised ValueError: boom, in _raises_value_error"),
    ("exits", _exits, "raised SystemExit: 3"),
    ("recurses", _recurses, "raised RecursionError"),
    ("raises-unspeakable", _raises_unspeakable, "raised Unspeakable, whose text cannot be read (ValueError)"),
    ("raises-foreign", _raises_foreign, "raised Foreign: from elsewhere"),
    ("raises-group", _raises_group, "raised ExceptionGroup: several"),
)


# --- hanging -------------------------------------------------------------------------------------


def _spins(*_: object) -> None:
    while True:
        pass


def _sleeps(*_: object) -> None:
    time.sleep(10**6)


def _swallows_and_sleeps(*_: object) -> None:
    while True:
        try:
            time.sleep(10**6)
        except BaseException:  # noqa: B036 - that is the point
            pass


def _swallows_and_spins(*_: object) -> None:
    while True:
        try:
            _spins()
        except BaseException:  # noqa: B036
            pass


def _answers_when_interrupted(*_: object) -> None:
    try:
        _spins()
    except BaseException:  # noqa: B036
        return


def _translates_the_interruption(*_: object) -> None:
    try:
        _spins()
    except BaseException as error:
        raise ValueError("something went wrong") from error


HANGING: tuple[tuple[str, Callable[..., None]], ...] = (
    ("spins", _spins),
    ("sleeps", _sleeps),
    ("swallows-and-sleeps", _swallows_and_sleeps),
    ("swallows-and-spins", _swallows_and_spins),
    ("answers-when-interrupted", _answers_when_interrupted),
    ("translates-the-interruption", _translates_the_interruption),
)


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
        _spins()
        return ""


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


PLANS: tuple[tuple[str, Callable[[StepPlan], Any], str, str], ...] = (
    ("none", lambda plan: None, "ANSWER", "schedule() returned None, not a StepPlan"),
    ("tuple", lambda plan: tuple(plan), "ANSWER", "not a StepPlan"),
    ("evil", lambda plan: Evil(), "ANSWER", "reading what schedule() returned raised SystemExit"),
    ("evil-plan", lambda plan: EvilPlan(*plan), "ANSWER", "not a StepPlan"),
    ("slow", lambda plan: Slow(), "ANSWER", "reading what schedule() returned did not come back within"),
    ("class", lambda plan: StepPlan, "ANSWER", "not a StepPlan"),
    ("grants-list", _plan(grants=list), "ANSWER", "grants of ["),
    ("grants-none", _plan(grants=None), "ANSWER", "grants of None"),
    ("grant-tuple", _plan(grants=lambda grants: tuple(map(tuple, grants))), "ANSWER", "a grant (("),
    ("preempted-text", _plan(preempted="ab"), "ANSWER", "preempted of 'ab'"),
    ("preempted-stranger", _plan(preempted=("nobody",)), "STATE", "nobody is preempted"),
    ("preempted-twice", _plan(preempted=("a", "a")), "STATE", "preempted ['a', 'a']"),
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
    ("drafts-invented", _grant(drafts=(1, 2, 3)), "SPEC-2", "drafts: spec ()"),
)
"""What `schedule` makes of the plan of the reference."""


# --- results -------------------------------------------------------------------------------------


def _result(**changes: Any) -> Callable[[StepResult], StepResult]:
    return lambda result: result._replace(
        **{name: value(getattr(result, name)) if callable(value) else value for name, value in changes.items()}
    )


RESULTS: tuple[tuple[str, Callable[[StepResult], Any], str, str], ...] = (
    ("none", lambda result: None, "ANSWER", "commit() returned None, not a StepResult"),
    ("evil", lambda result: Evil(), "ANSWER", "reading what commit() returned raised SystemExit"),
    ("emitted-dict", _result(emitted=dict), "ANSWER", "emitted of {"),
    ("emitted-triples", _result(emitted=(("a", (1,), 2),)), "ANSWER", "emitted of (('a', (1,), 2),)"),
    ("emitted-lists", _result(emitted=(("a", [1]),)), "ANSWER", "emitted of (('a', [1]),)"),
    ("tokens-float", _result(emitted=(("a", (5.0,)),)), "ANSWER", "tokens of a that are not whole numbers"),
    ("tokens-true", _result(emitted=(("a", (True,)),)), "ANSWER", "tokens of a that are not whole numbers"),
    ("stranger", _result(emitted=(("nobody", (1,)),)), "OUTPUT", "delivered for nobody"),
    ("twice", _result(emitted=lambda emitted: emitted * 2), "OUTPUT", "tokens are delivered twice for a"),
    ("nothing", _result(emitted=()), "OUTPUT", "a delivers [], due are [5]"),
    ("wrong-tokens", _result(emitted=(("a", (77,)), ("b", (5,)))), "OUTPUT", "a delivers [77], due are [5]"),
    ("finished-none", _result(finished=None), "ANSWER", "finished of None"),
    ("finished-ids", _result(finished=("a",)), "ANSWER", "an end 'a', not a Finish"),
    ("reason-text", _result(finished=(Finish("a", "stop"),)), "ANSWER", "not a Finish"),  # type: ignore[arg-type]
    ("id-list", _result(finished=(Finish(["a"], FinishReason.STOP),)), "ANSWER", "field of the wrong type"),  # type: ignore[arg-type]
    ("stop-token-evil", _result(finished=(Finish("a", FinishReason.STOP, Evil()),)), "ANSWER", "raised SystemExit"),  # type: ignore[arg-type]
    ("finish-stranger", _result(finished=(Finish("nobody", FinishReason.STOP),)), "FINISH", "nobody finishes, but is not live"),
    ("finish-twice", _result(finished=(Finish("a", FinishReason.STOP),) * 2), "FINISH", "a finishes twice"),
    ("finish-early", _result(finished=(Finish("a", FinishReason.STOP),)), "FINISH", "a after [5]: stop, due is goes on"),
)
"""What `commit` makes of the result of the reference."""


# --- inspections ---------------------------------------------------------------------------------


def _inside(**changes: Any) -> Callable[[Inspection], Inspection]:
    return lambda seen: dataclasses.replace(
        seen, **{name: value(getattr(seen, name)) if callable(value) else value for name, value in changes.items()}
    )


INSPECTIONS: tuple[tuple[str, Callable[[Inspection], Any], str, str], ...] = (
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
    ("key-evil", _inside(keys={1: Evil()}), "ANSWER", "reading what inspect() returned raised ValueError: incomparable"),
    ("key-nan", _inside(keys={1: float("nan")}), "ANSWER", "a key of block 1 that does not equal itself"),
    ("free-order-text", _inside(free_order="123"), "ANSWER", "free_order of '123'"),
    ("encoder-free-text", _inside(encoder_free="2"), "ANSWER", "encoder_free of '2'"),
    ("leftovers-none", _inside(leftovers=None), "ANSWER", "leftovers of None"),
)
"""What `inspect` makes of the inspection of the reference."""


# --- the rest ------------------------------------------------------------------------------------


def _changes_request(self: InspectedReference, request: Request) -> None:
    object.__setattr__(request, "max_tokens", 99)


def _empties_request(self: InspectedReference, request: Request) -> None:
    object.__delattr__(request, "max_tokens")


def _spoils_request(self: InspectedReference, request: Request) -> None:
    object.__setattr__(request, "max_tokens", Evil())


def _changes_sampled(self: InspectedReference, plan: StepPlan, output: ModelOutput) -> None:
    output.sampled["a"] = (1,)  # type: ignore[index]


def _replaces_sampled(self: InspectedReference, plan: StepPlan, output: ModelOutput) -> StepResult:
    result = InspectedReference.commit(self, plan, output)
    object.__setattr__(output, "sampled", {})
    return result


def _empties_output(self: InspectedReference, plan: StepPlan, output: ModelOutput) -> StepResult:
    result = InspectedReference.commit(self, plan, output)
    object.__delattr__(output, "drafts")
    return result


def _refuses(*_: object) -> None:
    raise Refused("not today")


class _UnspeakableRefusal(Refused):
    __str__ = Unspeakable.__str__


def _refuses_unspeakably(*_: object) -> None:
    raise _UnspeakableRefusal


OTHERS: tuple[Hostile, ...] = (
    Hostile("add-changes-the-request", _with("add", _changes_request), "ANSWER", ("add() changed the request a",)),
    Hostile("add-empties-the-request", _with("add", _empties_request), "ANSWER", ("request after add() raised Attr",)),
    Hostile("add-spoils-the-request", _with("add", _spoils_request), "ANSWER", ("add() raised ValueError: incomparable",)),
    Hostile("add-refuses", _with("add", _refuses), "ANSWER", ("add() refused a", "not today")),
    Hostile("add-refuses-unspeakably", _with("add", _refuses_unspeakably), "ANSWER", ("reason that add() gives raised",)),
    Hostile("schedule-refuses", _with("schedule", _refuses), "ANSWER", ("schedule() raised Refused: not today",)),
    Hostile("commit-changes-sampled", _with("commit", _changes_sampled), "ANSWER", ("commit() raised TypeError",)),
    Hostile("commit-replaces-sampled", _with("commit", _replaces_sampled), "ANSWER", ("commit() changed the model output",)),
    Hostile("commit-empties-the-output", _with("commit", _empties_output), "ANSWER", ("commit() changed the model output",)),
    Hostile("reset-none", _with("reset_prefix_cache", lambda self: None), "ANSWER", ("reset_prefix_cache() returned None",)),
    Hostile("reset-one", _with("reset_prefix_cache", lambda self: 1), "ANSWER", ("reset_prefix_cache() returned 1",)),
    Hostile("no-grammar-ready", _with("grammar_ready", None), "ANSWER", ("grammar_ready() raised TypeError",)),  # type: ignore[arg-type]
    Hostile("factory-raises", _raises_value_error, "ANSWER", ("the factory raised ValueError: boom",)),
    Hostile("factory-hangs", _spins, "ANSWER", ("the factory did not come back within",)),
    Hostile("factory-none", lambda config: None, "ANSWER", ("the factory returned None, which has no add()",)),
    Hostile("factory-number", lambda config: 7, "ANSWER", ("the factory returned 7, which has no add()",)),
    Hostile("factory-evil", lambda config: Evil(), "ANSWER", ("reading what the factory returned raised ValueError",)),
    Hostile("factory-slow", lambda config: Slow(), "ANSWER", ("reading what the factory returned did not come back",)),
    Hostile("factory-not-callable", 7, "ANSWER", ("the factory raised TypeError",)),  # type: ignore[arg-type]
)


def _all() -> Iterator[Hostile]:
    for method in METHODS:
        for name, raising, words in RAISING:
            yield Hostile(f"{method}-{name}", _with(method, raising), "ANSWER", (f"{method}() {words}",))
    for name, hanging in HANGING:
        for method in METHODS if name == "spins" else ("schedule",):
            yield Hostile(f"{method}-{name}", _with(method, hanging), "ANSWER", (f"{method}() did not come back within",))
    for method, table in (("schedule", PLANS), ("commit", RESULTS), ("inspect", INSPECTIONS)):
        for name, change, law, words in table:
            yield Hostile(f"{method}-{name}", _changing(method, change), law, (words,))
    yield from OTHERS


HOSTILE: tuple[Hostile, ...] = tuple(_all())
