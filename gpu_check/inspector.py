"""One executor with all detectors on: carries out a plan, and tells what they saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpu_check.detectors import Finding, LayerRecord, Numbers, OwnerMap, Truth, not_finite, not_written
from reference.batch import Batch
from reference.bounds import OutOfBounds
from reference.executor import Executor, Sampling, new_blocks
from spec.model import Script
from spec.observer import Seen
from spec.vocabulary import StepPlan

Change = Callable[[Batch], None]


class Inspector:
    """Runs plans on `executor`.

    poison   whether new blocks are filled with NaN; off, the oracle is alone with what blocks held before
    change   what is done to every batch before the kernels see it: nothing, or a fault
    """

    def __init__(self, executor: Executor, *, poison: bool = True, change: Change = lambda batch: None) -> None:
        self.executor = executor
        self.poison = poison
        self.change = change
        self.record = LayerRecord()
        executor.watch = self.record
        self.owners = OwnerMap(executor.config)
        self.numbers = Numbers(executor)
        self.sampled: dict[str, Sampling] = {}

    def step(self, plan: StepPlan, truths: Mapping[str, Truth]) -> list[Finding]:
        """Carries out a plan; what the detectors saw, all of them asked."""
        known = dict(truths)
        self.sampled = {}
        self.record.clear()
        findings: list[Finding] = []
        try:
            batch = self.executor.prepare(plan)
            self._hand_out(plan)
            if not batch.rows:
                return []
            self.change(batch)
            findings.extend(self.owners.follow(batch, known))
            self.sampled = self.executor.run(batch, plan)
        except OutOfBounds as error:
            return [*findings, Finding("bounds", str(error).partition(":")[0], str(error))]
        findings.extend(not_finite(self.record.attended, batch))
        findings.extend(not_written(self.executor, self.record, batch))
        findings.extend(self.numbers.attended(self.record.attended, batch, known))
        findings.extend(self.numbers.sampled(self.sampled, batch, known))
        return findings

    def _hand_out(self, plan: StepPlan) -> None:
        size = self.executor.config.block_size
        new = [block for grant in plan.grants for block in new_blocks(grant, size)]
        if new and self.poison:
            self.executor.cache.fill(new, float("nan"))
        for grant in plan.grants:
            self.owners.clear(new_blocks(grant, size), size)


def truths_of(plan: StepPlan, live: Mapping[str, Seen], scripts: Mapping[str, Script]) -> dict[str, Truth]:
    """What the grants of a plan are about, once the observer has followed it."""
    found = {}
    for grant in plan.grants:
        seen, script = live[grant.request_id], scripts[grant.request_id]
        text = (*seen.tokens, *grant.drafts)[: grant.start + grant.tokens]
        prompt = seen.request.prompt_token_ids
        foretold = (*prompt, *(script.token(index) for index in range(seen.limit - len(prompt))))
        whole = foretold if foretold[: len(text)] == text else text
        found[grant.request_id] = Truth(seen, text, grant.drafts, whole)
    return found
