"""The reference scheduler as an implementation under test.

It already speaks the vocabulary of the suite; what is added here is a look inside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from conformance.protocol import CAPABILITIES, Implementation, Inspection
from reference.scheduler import Scheduler
from spec.vocabulary import Config


class InspectedReference(Scheduler):
    """The reference scheduler with `inspect`."""

    def inspect(self, blocks: Collection[int] | None = None) -> Inspection:
        """The facts of this moment; tables are the scheduler's own and change with the next call."""
        pool = self.kv_cache.pool
        look: Iterable[int] = range(1, self.config.num_blocks) if blocks is None else blocks
        keys = {block: pool.index.key_of(block) for block in look}
        part = Inspection(
            running=(),
            waiting=(),
            computed={},
            tables={},
            free_blocks=pool.free_blocks,
            refs={block: pool.references[block] for block in look},
            keys={block: key for block, key in keys.items() if key is not None},
            encoder_free=self.encoder_cache.free_tokens,
        )
        return part if blocks is not None else self._with_the_rest(part)

    def _with_the_rest(self, part: Inspection) -> Inspection:
        return replace(
            part,
            running=tuple(live.request_id for live in self.running),
            waiting=tuple(live.request_id for live in self.waiting),
            computed={name: live.computed for name, live in self.live.items()},
            tables={name: live.table for name, live in self.live.items()},
            free_order=tuple(self.kv_cache.pool.free_queue),
            leftovers=self._leftovers(),
        )

    def _leftovers(self) -> tuple[str, ...]:
        """Entries of per-request maps whose request is gone."""
        queued = {live.request_id for live in self.running}
        queued.update(live.request_id for live in self.waiting)
        maps: dict[str, Collection[str]] = {
            "live": self.live,
            "encoder_cache.cached": self.encoder_cache.cached,
        }
        return tuple(
            f"{name}: {request_id}"
            for name, request_ids in maps.items()
            for request_id in request_ids
            if request_id not in queued
        )


def make(config: Config) -> InspectedReference:
    """A reference scheduler that shows its inside."""
    return InspectedReference(config)


IMPLEMENTATION = Implementation(
    name="reference",
    factory=make,
    capabilities=frozenset(CAPABILITIES),
    header=("reference: the scheduler in reference/, nothing adjusted",),
)
