"""The model behind a run: what each request says, decided before any scheduler sees it.

A scheduler must not change what is said.  So the text is a function of the request and the position
alone, and which drafts are accepted follows from the text; any scheduler can be driven by it, and
the output with preemption must equal the output without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spec.observer import Observer
from spec.vocabulary import Config, ModelOutput, StepPlan

_BEYOND = 1_000_000
"""Token ids of what a request says behind the end of its script: `_BEYOND + index`."""


@dataclass(frozen=True)
class Script:
    """What one request says, and what is proposed for it.

    `drafts[i % len(drafts)]`: after i output tokens, how many drafts are proposed, and how many of
    these are right.
    """

    output: Sequence[int] = ()
    drafts: tuple[tuple[int, int], ...] = ()

    def token(self, index: int) -> int:
        return self.output[index] if index < len(self.output) else _BEYOND + index

    def proposals(self, index: int, limit: int) -> tuple[int, ...]:
        """Drafts for the output tokens from `index` on, at most `limit`."""
        if not self.drafts:
            return ()
        count, right = self.drafts[index % len(self.drafts)]
        return tuple(self.token(index + j) + (j >= right) for j in range(min(count, limit)))


def answer(config: Config, observer: Observer, scripts: Mapping[str, Script], plan: StepPlan) -> ModelOutput:
    """What the model says when `plan` is executed; asked after the observer followed the plan."""
    sampled: dict[str, tuple[int, ...]] = {}
    drafts: dict[str, tuple[int, ...]] = {}
    for grant in plan.grants:
        seen = observer.live[grant.request_id]
        script = scripts[grant.request_id]
        index = seen.known - len(seen.request.prompt_token_ids)
        samples = grant.start + grant.tokens >= seen.known
        accepted = 0
        if samples:
            while accepted < len(grant.drafts) and grant.drafts[accepted] == script.token(index + accepted):
                accepted += 1
            sampled[grant.request_id] = tuple(script.token(index + j) for j in range(accepted + 1))
        if config.num_speculative_tokens and (samples or config.use_eagle):
            said = index + accepted + 1 if samples else index
            drafts[grant.request_id] = script.proposals(said, config.num_speculative_tokens)
    return ModelOutput(sampled, drafts)
