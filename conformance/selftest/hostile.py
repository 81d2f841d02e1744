"""Hostile adapters: schedulers that answer as no scheduler should, and the verdict that each must get.

Each is the reference scheduler with one method replaced.  Tables of (name, what it does, law, words of the verdict).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from conformance.adapters.reference import InspectedReference
from conformance.protocol import CAPABILITIES, Implementation
from conformance.selftest.hostile_answers import INSPECTIONS, PLANS, RESULTS, Evil, Slow
from spec.events import Abort, Add, Event, GrammarReady, Reset, StepEvent
from spec.model import Script
from spec.vocabulary import Config, EncoderItem, ModelOutput, Refused, Request, StepPlan, StepResult

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
    Add(
        Request("a", (1, 9, 9, 2), max_tokens=3, items=(EncoderItem(1, 2, 20),), needs_grammar=True),
        Script((5, 6, 7), ((1, 1),)),
    ),
    Add(Request("b", (1, 2, 3), max_tokens=4), Script((5, 6, 7, 8), ((1, 0),))),
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
        with contextlib.suppress(BaseException):
            time.sleep(10**6)


def _swallows_and_spins(*_: object) -> None:
    while True:
        try:
            _spins()
        except BaseException:
            continue


def _answers_when_interrupted(*_: object) -> None:
    try:
        _spins()
    except BaseException:
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
    Hostile(
        "add-spoils-the-request",
        _with("add", _spoils_request),
        "ANSWER",
        ("add() raised ValueError: incomparable",),
    ),
    Hostile("add-refuses", _with("add", _refuses), "ANSWER", ("add() refused a", "not today")),
    Hostile(
        "add-refuses-unspeakably",
        _with("add", _refuses_unspeakably),
        "ANSWER",
        ("reason that add() gives raised",),
    ),
    Hostile("schedule-refuses", _with("schedule", _refuses), "ANSWER", ("schedule() raised Refused: not today",)),
    Hostile("commit-changes-sampled", _with("commit", _changes_sampled), "ANSWER", ("commit() raised TypeError",)),
    Hostile(
        "commit-replaces-sampled",
        _with("commit", _replaces_sampled),
        "ANSWER",
        ("commit() changed the model output",),
    ),
    Hostile(
        "commit-empties-the-output",
        _with("commit", _empties_output),
        "ANSWER",
        ("commit() changed the model output",),
    ),
    Hostile(
        "reset-none",
        _with("reset_prefix_cache", lambda self: None),
        "ANSWER",
        ("reset_prefix_cache() returned None",),
    ),
    Hostile("reset-one", _with("reset_prefix_cache", lambda self: 1), "ANSWER", ("reset_prefix_cache() returned 1",)),
    Hostile(
        "no-grammar-ready",
        _with("grammar_ready", None),  # type: ignore[arg-type]
        "ANSWER",
        ("grammar_ready() raised TypeError",),
    ),
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
            words = f"{method}() did not come back within"
            yield Hostile(f"{method}-{name}", _with(method, hanging), "ANSWER", (words,))
    for method, table in (("schedule", PLANS), ("commit", RESULTS), ("inspect", INSPECTIONS)):
        for name, change, law, words in table:
            yield Hostile(f"{method}-{name}", _changing(method, change), law, (words,))
    yield from OTHERS


HOSTILE: tuple[Hostile, ...] = tuple(_all())
