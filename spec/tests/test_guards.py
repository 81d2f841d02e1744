"""A guard refuses by its first conjunct that does not hold, and every conjunct of the rules refuses with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spec.allocation import ALLOCATE, Attempt, Step
from spec.guards import Conjunct, Guard, Refusal
from spec.lifecycle import ADD
from spec.outcomes import OUTCOMES
from spec.rules import RULE_BY_ID
from spec.running import VISIT
from spec.state import State
from spec.tests.build import admitted, request, state
from spec.waiting import ADMISSIONS, EXAMINE

EVEN_AND_SMALL: Guard[int] = Guard(
    "take",
    (
        Conjunct("even", "A-1", lambda n: n % 2 == 0, lambda n: f"{n} is odd"),
        Conjunct("small", "A-2", lambda n: n < 10, lambda n: f"{n} is 10 or more"),
    ),
)


@pytest.mark.parametrize(
    ("number", "refusal"),
    [
        (4, None),
        (3, Refusal("even", "A-1", "3 is odd")),
        (12, Refusal("small", "A-2", "12 is 10 or more")),
        (13, Refusal("even", "A-1", "13 is odd")),
    ],
)
def test_the_first_conjunct_that_does_not_hold_refuses(number: int, refusal: Refusal | None) -> None:
    assert EVEN_AND_SMALL.refusal(number) == refusal


def test_outcomes_are_the_refusals_in_order_then_ok() -> None:
    assert EVEN_AND_SMALL.outcomes() == ("even", "small", "ok")


# --- the guards of the rules ----------------------------------------------------------------------


def step(built: State, **values: Any) -> Step:
    made = Step(built.config)
    for name, value in values.items():
        setattr(made, name, value)
    return made


def visit(**values: Any) -> tuple[State, Step]:
    built = admitted(request("a"))
    return built, step(built, **values)


def admissions(built: State, **values: Any) -> tuple[State, Step]:
    return built, step(built, **values)


def examine(adapters: set[int], **changes: Any) -> tuple[State, Step, Any]:
    built = state(request("a", **changes), max_loras=1)
    return built, step(built, adapters=adapters), built.waiting[0]


def attempt(tokens: int, **values: int) -> Attempt:
    built = state(request("a"))
    made = Attempt(built, step(built), built.waiting[0], 0, tokens)
    for name, value in values.items():
        setattr(made, name, value)
    return made


FULL: dict[str, Any] = {"max_num_seqs": 1}

REFUSALS: tuple[tuple[Guard[Any], Callable[[], Any], str, str], ...] = (
    (ADD, lambda: (state(request("a")), request("a")), "id", "id: a is live"),
    (ADD, lambda: (state(num_blocks=3), request("a", 7)), "fits alone", "pool: needs up to 3 blocks alone, 2 usable"),
    (VISIT, lambda: visit(index=1), "all visited", "every request was visited"),
    (VISIT, lambda: visit(budget=0), "budget", "budget: no token left"),
    (ALLOCATE, lambda: attempt(0), "nothing to compute", "tokens: none left to schedule before an encoder item"),
    (ALLOCATE, lambda: attempt(4, needed=9), "pool", "pool: needs 9 blocks, 8 free"),
    (
        ALLOCATE,
        lambda: attempt(4, needed=7, evictable=2),
        "pool",
        "pool: needs 7 blocks, 8 free, 2 of which are hits",
    ),
    (
        ADMISSIONS,
        lambda: admissions(state(request("a")), preempted=["b"]),
        "preempted",
        "a request was preempted in this step",
    ),
    (ADMISSIONS, lambda: admissions(state()), "queue empty", "nobody waits"),
    (ADMISSIONS, lambda: admissions(state(request("a")), budget=0), "budget", "budget: no token left"),
    (ADMISSIONS, lambda: admissions(one_runs_one_waits()), "seats", "seats: 1 of 1 taken"),
    (EXAMINE, lambda: examine(set(), needs_grammar=True), "grammar", "grammar: not compiled yet"),
    (EXAMINE, lambda: examine({1}, lora_id=2), "adapters", "adapters: [1] fill the cap of 1"),
)

GUARDS: tuple[Guard[Any], ...] = (ADD, VISIT, ALLOCATE, ADMISSIONS, EXAMINE)


def one_runs_one_waits() -> State:
    built = admitted(request("a"), **FULL)
    built.waiting.append(state(request("b")).waiting[0])
    return built


@pytest.mark.parametrize(("guard", "view", "name", "reason"), REFUSALS)
def test_a_conjunct_refuses_with_its_reason(guard: Guard[Any], view: Callable[[], Any], name: str, reason: str) -> None:
    refusal = guard.refusal(view())
    assert refusal is not None
    assert (refusal.name, refusal.reason) == (name, reason)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.action)
def test_every_conjunct_refuses_something(guard: Guard[Any]) -> None:
    assert {name for each, _, name, _ in REFUSALS if each is guard} == set(guard.outcomes()) - {"ok"}


@pytest.mark.parametrize(
    ("guard", "view"),
    [
        (ADD, lambda: (state(num_blocks=3), request("a", 6, 2))),
        (VISIT, lambda: visit(budget=1)),
        (ALLOCATE, lambda: attempt(1, needed=6, evictable=2)),
        (ADMISSIONS, lambda: admissions(state(request("a"), **FULL), budget=1)),
        (EXAMINE, lambda: examine({1}, lora_id=1)),
        (EXAMINE, lambda: examine({1})),
    ],
)
def test_a_guard_lets_pass_what_is_just_enough(guard: Guard[Any], view: Callable[[], Any]) -> None:
    assert guard.refusal(view()) is None


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.action)
def test_every_conjunct_names_its_rule(guard: Guard[Any]) -> None:
    assert {conjunct.rule for conjunct in guard.conjuncts} <= RULE_BY_ID.keys()


@pytest.mark.parametrize("guard", [ADD, VISIT, ADMISSIONS, EXAMINE], ids=lambda guard: guard.action)
def test_every_refusal_is_an_outcome_of_the_same_rule(guard: Guard[Any]) -> None:
    for conjunct in guard.conjuncts:
        assert OUTCOMES[guard.action, conjunct.name] == conjunct.rule
