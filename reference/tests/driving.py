"""Drives the reference scheduler in tests and writes each plan as one line.

    a@8+5[4] d(7,8) i(0) | preempted b | finished c | freed c.0
    b@8+5[4,5,6,3] resumed x4

reads: `a` computes 5 tokens from position 8 and takes block 4; the last two tokens are the
drafts 7 and 8; item 0 is encoded.  `b` comes back with a whole table; 4 tokens are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reference.scheduler import Scheduler
from spec.vocabulary import Admission, Config, EncoderItem, Grant, ModelOutput, Request, StepPlan, StepResult

FILLER = 900
"""What the model samples unless a test says otherwise; no stop token."""


def config(
    num_blocks: int = 40,
    block_size: int = 4,
    max_num_batched_tokens: int = 64,
    max_num_seqs: int = 8,
    max_model_len: int = 64,
    **features: int | bool,
) -> Config:
    """A configuration for text requests, with the given features on top."""
    sizes = (num_blocks, block_size, max_num_batched_tokens, max_num_seqs, max_model_len)
    return Config(*sizes, **features)  # type: ignore[arg-type]


class Driver:
    """One scheduler, and the model that it believes to drive."""

    def __init__(self, settings: Config | None = None) -> None:
        self.scheduler = Scheduler(settings or config())
        self.result = StepResult((), ())
        self._arrivals = 0

    def add(
        self,
        request_id: str,
        prompt: int | Sequence[int],
        max_tokens: int = 20,
        items: Sequence[tuple[int, int, int]] = (),
        **fields: int | bool | tuple[int, ...],
    ) -> None:
        """Add a request; a prompt given by its length shares no token with any other."""
        self._arrivals += 1
        tokens = range(1000 * self._arrivals, 1000 * self._arrivals + prompt) if isinstance(prompt, int) else prompt
        self.scheduler.add(
            Request(
                request_id,
                tuple(tokens),
                max_tokens,
                items=tuple(EncoderItem(*item) for item in items),
                **fields,  # type: ignore[arg-type]
            )
        )

    def step(
        self,
        sampled: Mapping[str, Sequence[int]] | None = None,
        drafts: Mapping[str, Sequence[int]] | None = None,
    ) -> str:
        """Schedule and commit; who is not in `sampled` samples one filler if it may."""
        plan = self.scheduler.schedule()
        self.commit(plan, sampled, drafts)
        return show(plan)

    def commit(
        self,
        plan: StepPlan,
        sampled: Mapping[str, Sequence[int]] | None = None,
        drafts: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        tokens: dict[str, tuple[int, ...]] = {
            grant.request_id: (FILLER,) for grant in plan.grants if self._samples(grant)
        }
        tokens.update({name: tuple(given) for name, given in (sampled or {}).items()})
        proposed = {name: tuple(given) for name, given in (drafts or {}).items()}
        self.result = self.scheduler.commit(plan, ModelOutput(tokens, proposed))

    def steps(self, count: int) -> list[str]:
        return [self.step() for _ in range(count)]

    @property
    def running(self) -> str:
        return " ".join(live.request_id for live in self.scheduler.running)

    @property
    def waiting(self) -> str:
        return " ".join(live.request_id for live in self.scheduler.waiting)

    @property
    def free(self) -> list[int]:
        """The free blocks, front first."""
        return list(self.scheduler.kv_cache.pool.free_queue)

    def table(self, request_id: str) -> list[int]:
        return self.scheduler.live[request_id].table

    def computed(self, request_id: str) -> int:
        return self.scheduler.live[request_id].computed

    def published(self, request_id: str) -> list[bool]:
        """For each block of a table, whether it is in the prefix index."""
        index = self.scheduler.kv_cache.pool.index
        return [index.key_of(block) is not None for block in self.table(request_id)]

    def _samples(self, grant: Grant) -> bool:
        live = self.scheduler.live.get(grant.request_id)
        return live is not None and grant.start + grant.tokens >= len(live.tokens)


def show(plan: StepPlan) -> str:
    """A plan in one line."""
    parts = [" ".join(_show_grant(grant) for grant in plan.grants)]
    if plan.preempted:
        parts.append("preempted " + " ".join(plan.preempted))
    if plan.finished:
        parts.append("finished " + " ".join(plan.finished))
    if plan.freed_items:
        parts.append("freed " + " ".join(f"{name}.{number}" for name, number in plan.freed_items))
    return " | ".join(parts)


def _show_grant(grant: Grant) -> str:
    line = f"{grant.request_id}@{grant.start}+{grant.tokens}{_listed('[]', grant.blocks)}"
    if grant.admission is Admission.RESUMED:
        line += " resumed"
    if grant.drafts:
        line += f" d{_listed('()', grant.drafts)}"
    if grant.items:
        line += f" i{_listed('()', grant.items)}"
    if grant.external:
        line += f" x{grant.external}"
    return line


def _listed(brackets: str, numbers: Sequence[int]) -> str:
    return brackets[0] + ",".join(map(str, numbers)) + brackets[1]
