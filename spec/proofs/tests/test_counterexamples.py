"""What must be refuted is, by the smallest numbers; and these numbers make runs that show it."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

import pytest
import z3

from spec.events import Add
from spec.proofs import traces
from spec.proofs.counterexamples import DEADLOCK, DEDUCTION, EXPECTED, POLICY, UNCHARGED, Expected, find
from spec.proofs.proving import Failure
from spec.proofs.state.invariants import length
from spec.proofs.state.world import World
from spec.proofs.symbols import sources, witness
from spec.proofs.symbols.value import term
from spec.proofs.theorems import theorem_of
from spec.proofs.traces import RUNS, Replayable
from spec.vocabulary import ModelOutput, StepPlan

Extra = Callable[[World], list[Any]]


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected.name)
def test_counterexamples_are_found(expected: Expected) -> None:
    found = find(expected)
    assert found is not None
    assert found.values
    assert found.decisions or not found.path


# --- the smallest --------------------------------------------------------------------------------


def test_a_counterexample_does_not_depend_on_what_was_asked_before() -> None:
    first = [find(each) for each in (DEDUCTION, POLICY, UNCHARGED)]
    second = [find(each) for each in (UNCHARGED, POLICY, DEDUCTION)]
    assert first == second[::-1]


def test_numbers_are_fixed_in_order_each_to_the_smallest() -> None:
    x, y, p = z3.Int("x"), z3.Int("y"), z3.Bool("p")
    assumed = [x + y == 30, y <= 20, z3.Or(p, x >= 40)]
    told = {"x": (x, x + 1), "y": (y, y), "p": (p, p)}
    solver = z3.Solver()
    solver.add(*assumed, x == 17)
    assert solver.check() == z3.sat
    found = witness.smallest(assumed, told, x < 3, solver.model())
    assert found.values == {"x": ("10", "11"), "y": ("20", "20"), "p": ("True", "True")}
    assert found.about == ("x",)


@pytest.mark.parametrize(("low", "expected"), [(-7, 0), (3, 3), (12, 12), (1000, 1000)])
def test_a_number_is_not_negative_where_it_need_not_be(low: int, expected: int) -> None:
    assert _least(lambda x: x >= low, at=2000) == expected


def test_a_number_that_must_be_negative_is_as_near_to_0_as_it_can_be() -> None:
    assert _least(lambda x: x <= -5, at=-900) == -5


def _least(holds: Callable[[Any], Any], at: int) -> int:
    x, solver = z3.Int("x"), z3.Solver()
    solver.add(x == at)
    assert solver.check() == z3.sat
    found = witness.smallest([holds(x)], {"x": (x, x)}, z3.BoolVal(False), solver.model())
    return int(found.values["x"][0])


# --- runs ----------------------------------------------------------------------------------------

ANY: Extra = lambda w: []  # noqa: E731
BLOCKS_OF_3: Extra = lambda w: [w.block_size == 3]  # noqa: E731

MODELS: tuple[tuple[Expected, str, Extra], ...] = (
    (DEDUCTION, "POOL", ANY),
    (DEDUCTION, "POOL", BLOCKS_OF_3),
    (DEDUCTION, "POOL", lambda w: [w.block_size == 4, term(w.own.known) >= 11]),
    (DEDUCTION, "POOL", lambda w: [length(w.other.table) == 4]),
    (DEDUCTION, "POOL", lambda w: [w.state.pool.free.size == 3, w.block_size == 2]),
    (DEADLOCK, "PROGRESS", ANY),
    (DEADLOCK, "PROGRESS", BLOCKS_OF_3),
    (DEADLOCK, "PROGRESS", lambda w: [w.num_blocks == 5, w.block_size == 2]),
    (DEADLOCK, "PROGRESS", lambda w: [term(w.config.long_prefill_token_threshold) == 7, w.block_size == 2]),
    (POLICY, "CONTENT", ANY),
    (POLICY, "CONTENT", BLOCKS_OF_3),
    (POLICY, "CONTENT", lambda w: [w.block_size == 3, term(w.config.long_prefill_token_threshold) == 5]),
    (POLICY, "CONTENT", lambda w: [w.block_size == 2, term(w.own.computed) == 7]),
    (POLICY, "CONTENT", lambda w: [w.block_size == 4, length(w.other.table) == 3]),
    (POLICY, "CONTENT", lambda w: [w.block_size == 5, term(w.own.published) == 3]),
    (POLICY, "CONTENT", lambda w: [w.block_size == 2, term(w.own.known) == 15]),
    (POLICY, "CONTENT", lambda w: [w.block_size == 2, length(w.own.table) == 6]),
    (UNCHARGED, "BUDGET", ANY),
    (UNCHARGED, "BUDGET", BLOCKS_OF_3),
    (UNCHARGED, "BUDGET", lambda w: [length(w.own.request.prompt_token_ids) == 7, w.block_size == 2]),
)
"""A counterexample, the law that its run breaks, and what the model must say besides."""


@pytest.mark.parametrize(("expected", "law", "extra"), MODELS, ids=lambda value: getattr(value, "name", ""))
def test_the_numbers_of_any_model_make_a_run_that_shows_it(expected: Expected, law: str, extra: Extra) -> None:
    how = next(each for each in RUNS if each.expected is expected)
    found = find(expected, extra)
    assert found is not None
    run = how.build(found)
    assert traces.replay(run, how.broken(run.config)).startswith(law)
    lawful = traces.replay(run, how.as_it_is(run.config))
    assert lawful == "" or (expected is DEADLOCK and lawful.startswith("refused: pool"))


class Recorded:
    """A scheduler whose plans are kept."""

    def __init__(self, scheduler: Any) -> None:
        self.scheduler, self.plans = scheduler, list[StepPlan]()
        self.add, self.commit = scheduler.add, scheduler.commit

    def schedule(self) -> StepPlan:
        self.plans.append(self.scheduler.schedule())
        return self.plans[-1]


def test_the_numbers_of_a_model_are_those_of_its_run() -> None:
    how = next(each for each in RUNS if each.expected is POLICY)
    found = find(POLICY, lambda w: [w.block_size == 3, term(w.own.computed) == 8, length(w.other.table) == 2])
    assert found is not None
    run = how.build(found)
    scheduler = Recorded(how.broken(run.config))
    assert traces.replay(run, scheduler)
    first, second, third = scheduler.plans
    own, other = first.grants
    assert run.config.block_size == 3
    assert own.start + own.tokens == 8
    assert own.tokens == int(found.values["tokens"][0])
    assert len(other.blocks) == 2
    assert (second.preempted, [grant.request_id for grant in second.grants]) == (("own",), ["other"])
    assert [(grant.request_id, grant.start > 8) for grant in third.grants] == [("own", True)]


def test_a_request_that_never_fits_is_never_scheduled() -> None:
    how = next(each for each in RUNS if each.expected is DEADLOCK)
    found = find(DEADLOCK, BLOCKS_OF_3)
    assert found is not None
    run = how.build(found)
    scheduler = how.broken(run.config)
    scheduler.add(next(event.request for event in run.events if isinstance(event, Add)))
    for _ in range(5):
        plan = scheduler.schedule()
        assert plan.grants == ()
        scheduler.commit(plan, ModelOutput({}))


# --- failures of the text as it is ---------------------------------------------------------------


@pytest.mark.parametrize("how", RUNS, ids=lambda how: how.expected.name)
def test_what_holds_has_no_run(how: Replayable) -> None:
    assert traces.run_of_failure(Failure(how.case.name, how.expected.obligation, "refuted", "", ())) is None


@pytest.mark.parametrize("expected", [DEDUCTION, UNCHARGED], ids=lambda expected: expected.name)
def test_a_failure_of_the_text_has_a_run(expected: Expected, monkeypatch: pytest.MonkeyPatch) -> None:
    assert expected.change is not None
    broken, change = expected.change
    whole, changed = sources.tree, copy.deepcopy(sources.tree(broken))
    change(changed)
    ast.fix_missing_locations(changed)
    monkeypatch.setattr(sources, "tree", lambda module: changed if module == broken else whole(module))
    monkeypatch.setattr(sources, "_code", lambda module: sources._compile(module, sources.tree(module)))
    shown = traces.run_of_failure(Failure(expected.case.name, expected.obligation, "refuted", "", ()))
    assert shown is not None
    assert shown[1].startswith(theorem_of(expected.obligation))
