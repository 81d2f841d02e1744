"""The oracle and an observer, driven together: every law is asked at every moment."""

from __future__ import annotations

from spec import laws
from spec.laws import Violation
from spec.observer import Inspection, Observer
from spec.recount import recount
from spec.scheduler import Oracle
from spec.state import State
from spec.tests.build import PROFILE, names
from spec.validity import check_request
from spec.vocabulary import Config, ModelOutput, Profile, Request, StepPlan

EOS = 0
WORD = 7


class Run:
    """One run.

    plans    every plan, in order
    found    what was unlawful
    reached  (action, outcome) of the micro-steps
    """

    def __init__(self, config: Config, profile: Profile = PROFILE) -> None:
        self.config = config
        self.oracle = Oracle(config, profile)
        self.observer = Observer(config)
        self.plans: list[StepPlan] = []
        self.found: list[Violation] = []
        self.reached: set[tuple[str, str]] = set()

    @property
    def state(self) -> State:
        return self.oracle.state

    def add(self, *requests: Request) -> None:
        for request in requests:
            self.found += laws.check_add(self.observer, check_request(request, self.config))
            self.oracle.add(request)
            self.observer.add(request)

    def abort(self, request_id: str) -> None:
        self.oracle.abort(request_id)
        self.observer.abort(request_id)
        self.found += laws.check_inspection(self.observer, inspect(self.state)) + recount(self.state)

    def grammar_ready(self, request_id: str) -> None:
        self.oracle.grammar_ready(request_id)
        self.observer.grammar_ready(request_id)

    def step(self, accepted: int = 0, word: int = WORD) -> StepPlan:
        plan = self.oracle.schedule()
        self.plans.append(plan)
        self.found += laws.check_plan(self.observer, plan)
        step = self.observer.apply(plan)
        self.found += laws.check_step(self.observer, step)
        output = self._answer(plan, accepted, word)
        result = self.oracle.commit(plan, output)
        self.found += laws.check_answer(self.observer, step, result)
        self.found += laws.check_result(self.observer, self.observer.settle(step, output, result))
        self.found += laws.check_inspection(self.observer, inspect(self.state)) + recount(self.state)
        self.reached.update(self.state.log)
        return plan

    def steps(self, count: int, accepted: int = 0) -> None:
        for _ in range(count):
            self.step(accepted)

    def _answer(self, plan: StepPlan, accepted: int, word: int) -> ModelOutput:
        """Every request says `word`; the first `accepted` drafts are taken as right, whatever they are."""
        sampled = {}
        for grant in plan.grants:
            if grant.start + grant.tokens >= self.state.live[grant.request_id].known:
                sampled[grant.request_id] = (*grant.drafts[:accepted], word)
        drafts = (WORD,) * self.config.num_speculative_tokens
        return ModelOutput(sampled, dict.fromkeys(sampled, drafts))


def inspect(state: State) -> Inspection:
    """What the spec shows of its inside."""
    return Inspection(
        running=tuple(names(state.running)),
        waiting=tuple(names(list(state.waiting))),
        computed={name: live.computed for name, live in state.live.items()},
        tables={name: live.table for name, live in state.live.items()},
        free_blocks=len(state.pool.free),
        refs=dict(enumerate(state.pool.refs)),
        keys=state.pool.key_of,
        free_order=tuple(state.pool.free),
        encoder_free=state.encoder_free,
    )
