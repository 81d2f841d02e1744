"""Lockstep sessions whose plans are carried out on tensors, with every detector on.

Which decisions the scheduler under test takes is judged in `conformance`.  What the model says comes from the
scripts of the run, so that a difference in the numbers cannot change the plans.
A run in the other direction, with the text of the model itself, first asks the oracle what that is (`speak`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from conformance.lockstep import Ended, Judge, Session
from conformance.protocol import Implementation
from gpu_check.detectors import Finding
from gpu_check.inspector import Inspector, truths_of
from gpu_check.oracle import Oracle, greedy_text
from reference.attention import load
from reference.executor import Executor
from reference.model import Model
from reference.model_config import ModelConfig, check_model
from reference.placement import check_cache_fits, place
from spec.events import Abort, Add, Event
from spec.model import Script
from spec.observer import Observer, StepSeen
from spec.vocabulary import Admission, Config, ModelOutput, StepPlan

Relabel = Callable[[StepPlan], StepPlan]


@dataclass(frozen=True)
class Setting:
    """What plans are carried out on.

    pad_to    the number of tokens of a batch is padded to a multiple of this
    blocks    blocks of the pool of tensors, where that is larger than the scheduler's
    """

    device: str = "cpu"
    dtype: str = "float64"
    attention: str = "paged"
    model: ModelConfig = field(default_factory=ModelConfig)
    pad_to: int = 1
    blocks: int | None = None

    def executor(self, config: Config) -> Executor:
        """A fresh executor; raises BadModel before anything is allocated."""
        placement = place(self.device, self.dtype)
        check_model(self.model)
        attend = load(self.attention)
        sized = config if self.blocks is None else replace(config, num_blocks=self.blocks)
        check_cache_fits(self.model, sized, self.dtype, placement)
        return Executor(Model(self.model, placement), sized, attend, self.pad_to)


class NumbersDiffer(AssertionError):
    """What the detectors saw in one step, and the plan of it."""

    def __init__(self, findings: Sequence[Finding], plan: StepPlan) -> None:
        super().__init__("\n".join([*map(str, findings), f"in {plan}"]))
        self.findings = findings


class TensorSession(Session):
    """A session that carries out every plan on tensors.

    met          what happened that is hard on memory, with how often (see `MEETINGS`)
    confirmed    known deviations that read foreign KV, and showed in the numbers as well
    relabel      other names for the blocks of a plan, on their way to the executor
    """

    def __init__(
        self,
        implementation: Implementation,
        config: Config,
        judge: Judge,
        inspector: Inspector,
        relabel: Relabel = lambda plan: plan,
    ) -> None:
        super().__init__(implementation, config, judge)
        self.inspector = inspector
        self.relabel = relabel
        self.met: Counter[str] = Counter()
        self.confirmed: Counter[str] = Counter()

    def apply(self, event: Event) -> None:
        """As in lockstep; raises NumbersDiffer too."""
        super().apply(event)
        if isinstance(event, Add) and event.request.request_id in self.observer.live:
            self.inspector.executor.add(event.request)
        elif isinstance(event, Abort):
            self.inspector.executor.abort(event.request_id)

    def answer(self, step: StepSeen) -> ModelOutput:
        self.met.update(meetings(step, self.observer))
        truths = truths_of(step.plan, self.observer.live, self.scripts)
        findings = self.inspector.step(self.relabel(step.plan), truths)
        foreign = [known for known in self.judge.known.entries if known.law == "CONTENT" and self.shown[known.id]]
        if foreign and findings:
            self.confirmed[foreign[0].id] += 1
            raise Ended(foreign[0])
        if findings:
            self.report(findings, step.plan)
        output = super().answer(step)
        self.inspector.executor.settle(output.sampled)
        self._meet_verdicts(step, output)
        return output

    def report(self, findings: Sequence[Finding], plan: StepPlan) -> None:
        """What becomes of findings."""
        raise NumbersDiffer(findings, plan)

    def _meet_verdicts(self, step: StepSeen, output: ModelOutput) -> None:
        for grant in step.plan.grants:
            if grant.drafts:
                wrong = len(grant.drafts) + 1 - len(output.sampled[grant.request_id])
                self.met["drafts rejected" if wrong else "drafts all accepted"] += 1


MEETINGS = (
    "preemption",
    "resumption",
    "hit on a free block",
    "hit of the same step",
    "full hit",
    "chunk beside decodes",
    "end on a block boundary",
    "drafts rejected",
    "drafts all accepted",
)
"""What generated runs must come across, or they check too little."""


def meetings(step: StepSeen, observer: Observer) -> Counter[str]:
    """What a plan asks of memory that is easy to get wrong; asked after the observer has followed it."""
    met: Counter[str] = Counter()
    block_size = observer.config.block_size
    met["preemption"] += len(step.preempted)
    handed_out: set[int] = set()
    shared = [grant.tokens for grant in step.plan.grants]
    met["chunk beside decodes"] += bool(shared and max(shared) > 1 and min(shared) == 1)
    for grant, seen, _, _, known, end in step.rows:
        met["end on a block boundary"] += end % block_size == 0
        hits = (grant.start - grant.external) // block_size if grant.admission is not Admission.RUNNING else 0
        met["resumption"] += grant.admission is Admission.RESUMED
        met["full hit"] += bool(hits) and known - hits * block_size <= block_size
        met["hit of the same step"] += any(block in handed_out for block in seen.table[:hits])
        met["hit on a free block"] += any(observer.holders[block] == 1 for block in seen.table[:hits])
        handed_out.update(grant.blocks[hits:])
    return met


def speak(event: Event, config: Config, oracle: Oracle) -> Event:
    """The event, with what the model itself says in place of a script: dense, one request at a time."""
    if not isinstance(event, Add):
        return event
    room = config.max_model_len - len(event.request.prompt_token_ids)
    said = greedy_text(oracle, event.request, min(room, event.request.max_tokens))
    return Add(event.request, Script(said, event.script.drafts))
