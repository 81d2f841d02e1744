"""Faults in what an executor keeps of requests between steps.  Each stands in for one of its methods."""

from __future__ import annotations

from collections.abc import Mapping

from reference.executor import Executor, Held
from spec.vocabulary import Admission, Grant, StepPlan


def rejected_drafts_kept(executor: Executor) -> None:
    """What was drafted is taken for what was said."""
    settle, run = executor.settle, executor.run
    drafted: dict[str, tuple[int, ...]] = {}

    def remember(batch: object, plan: StepPlan) -> object:
        drafted.update({grant.request_id: grant.drafts for grant in plan.grants})
        return run(batch, plan)  # type: ignore[arg-type]

    def faulty(sampled: Mapping[str, tuple[int, ...]]) -> None:
        settle({name: (*drafted[name][: len(said)], *said)[: len(said)] for name, said in sampled.items()})

    executor.run, executor.settle = remember, faulty  # type: ignore[method-assign,assignment]


def preempted_keeps_table(executor: Executor) -> None:
    """The table of a resumed request grows behind the old one."""
    extend = executor._extend_table

    def faulty(held: Held, grant: Grant) -> None:
        old = held.table if grant.admission is Admission.RESUMED else []
        extend(held, grant)
        held.table[:0] = old

    def forget(plan: StepPlan) -> None:
        for request_id in plan.finished:
            executor.held.pop(request_id, None)

    executor._extend_table, executor._forget = faulty, forget  # type: ignore[method-assign]


def blocks_replaced(executor: Executor) -> None:
    """New blocks of a running request replace its first ones."""
    extend = executor._extend_table

    def faulty(held: Held, grant: Grant) -> None:
        old = list(held.table)
        extend(held, grant)
        if grant.admission is Admission.RUNNING and grant.blocks:
            held.table[:] = [*grant.blocks, *old[len(grant.blocks) :], *grant.blocks][: len(held.table)]

    executor._extend_table = faulty  # type: ignore[method-assign]


def resumed_without_output(executor: Executor) -> None:
    """A preempted request forgets what it has said."""
    forget = executor._forget

    def faulty(plan: StepPlan) -> None:
        forget(plan)
        for request_id in plan.preempted:
            held = executor.held[request_id]
            held.tokens = list(held.request.prompt_token_ids)

    executor._forget = faulty  # type: ignore[method-assign]


def text_of_predecessor(executor: Executor) -> None:
    """Who comes in gets the text of who came before, where that is as long: a slot of a table used again."""
    take_in = executor._take_in
    last: list[int] = []

    def faulty(grant: Grant) -> Held:
        held = take_in(grant)
        if grant.admission is Admission.NEW:
            own = list(held.tokens)
            if len(last) >= len(own):
                held.tokens = last[: len(own)]
            last[:] = own
        return held

    executor._take_in = faulty  # type: ignore[method-assign]
