"""Faults in plans, as a scheduler may get them wrong; the truth that the detectors know stays with the sound plan.

Each is a class that sees every plan of a run and changes some of their grants.
"""

from __future__ import annotations

from spec.vocabulary import RESERVED_BLOCK, Admission, Config, Grant, StepPlan


class PlanFault:
    """Changes grants one by one; `tables` are the tables as the changed plans make them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.size = config.block_size
        self.tables: dict[str, list[int]] = {}

    def __call__(self, plan: StepPlan) -> StepPlan:
        for request_id in (*plan.finished, *plan.preempted):
            self.tables.pop(request_id, None)
        grants = []
        for grant in plan.grants:
            changed = self.change(grant)
            if grant.admission is not Admission.RUNNING:
                self.tables[grant.request_id] = []
            self.tables.setdefault(grant.request_id, []).extend(changed.blocks)
            grants.append(changed)
        return plan._replace(grants=tuple(grants))

    def change(self, grant: Grant) -> Grant:
        raise NotImplementedError

    def others(self, grant: Grant) -> list[list[int]]:
        """The tables of the other live requests."""
        return [table for name, table in self.tables.items() if name != grant.request_id and table]

    def hits(self, grant: Grant) -> int:
        """Leading blocks that an admission takes over."""
        return 0 if grant.admission is Admission.RUNNING else (grant.start - grant.external) // self.size


class LiveBlockHandedOut(PlanFault):
    """The last new block is one that somebody else holds."""

    def change(self, grant: Grant) -> Grant:
        others = self.others(grant)
        if not others or len(grant.blocks) <= self.hits(grant):
            return grant
        return grant._replace(blocks=(*grant.blocks[:-1], others[0][0]))


class BlockTwice(PlanFault):
    """The last new block stands in the table twice."""

    def change(self, grant: Grant) -> Grant:
        if len(grant.blocks) - self.hits(grant) < 2:
            return grant
        return grant._replace(blocks=(*grant.blocks[:-1], grant.blocks[-2]))


class TableTooShort(PlanFault):
    """The last block is missing, if it is needed."""

    def change(self, grant: Grant) -> Grant:
        return grant._replace(blocks=grant.blocks[:-1])


class BlockOutsidePool(PlanFault):
    """The last block is the one behind the pool."""

    def change(self, grant: Grant) -> Grant:
        return grant._replace(blocks=(*grant.blocks[:-1], self.config.num_blocks)) if grant.blocks else grant


class ReservedBlock(PlanFault):
    """The last block is the reserved one."""

    def change(self, grant: Grant) -> Grant:
        return grant._replace(blocks=(*grant.blocks[:-1], RESERVED_BLOCK)) if grant.blocks else grant


class HitOnUntouched(PlanFault):
    """The first block of a newcomer counts as a hit, but nobody was ever given it."""

    def change(self, grant: Grant) -> Grant:
        return _skip_block(grant, self.size, grant.blocks) if _fresh(grant, self.size) else grant


class HitOnUncomputed(PlanFault):
    """A key published before its tokens are computed: the last, unfinished block of somebody else is hit."""

    def change(self, grant: Grant) -> Grant:
        others = self.others(grant)
        if not others or not _fresh(grant, self.size):
            return grant
        return _skip_block(grant, self.size, (others[0][-1], *grant.blocks[1:]))


class HitOnForeign(PlanFault):
    """The first block of somebody else is hit, whatever it holds."""

    def change(self, grant: Grant) -> Grant:
        others = self.others(grant)
        if not others or not _fresh(grant, self.size):
            return grant
        return _skip_block(grant, self.size, (others[0][0], *grant.blocks[1:]))


class HitsSwapped(PlanFault):
    """The first two hits have changed places."""

    def change(self, grant: Grant) -> Grant:
        if self.hits(grant) < 2:
            return grant
        first, second, *rest = grant.blocks
        return grant._replace(blocks=(second, first, *rest))


class StaleHit(PlanFault):
    """The first hit is a block that held this prefix once: the first that was ever handed out."""

    oldest: int | None = None

    def change(self, grant: Grant) -> Grant:
        if self.oldest is None and grant.blocks:
            self.oldest = grant.blocks[0]
        if self.oldest is None or not self.hits(grant):
            return grant
        return grant._replace(blocks=(self.oldest, *grant.blocks[1:]))


class StartTooLate(PlanFault):
    """One position is passed over, where more than one is computed."""

    def change(self, grant: Grant) -> Grant:
        return grant._replace(start=grant.start + 1, tokens=grant.tokens - 1) if _can_skip(grant) else grant


class ResumedAtOldPosition(PlanFault):
    """A resumed request goes on behind its prompt, as if its blocks still were what they were."""

    def change(self, grant: Grant) -> Grant:
        if grant.admission is not Admission.RESUMED or grant.tokens < 2 or grant.external:
            return grant
        return grant._replace(start=grant.start + grant.tokens - 1, tokens=1)


class ExternalNotLoaded(PlanFault):
    """External tokens count as computed, but nobody loads them."""

    def change(self, grant: Grant) -> Grant:
        return grant._replace(external=0)


class ItemsNotComputed(PlanFault):
    """No encoder item is ever computed."""

    def change(self, grant: Grant) -> Grant:
        return grant._replace(items=())


class DraftsReversed(PlanFault):
    """Drafts are verified in the wrong order."""

    def change(self, grant: Grant) -> Grant:
        return grant._replace(drafts=tuple(reversed(grant.drafts)))


def _fresh(grant: Grant, size: int) -> bool:
    """A newcomer without hits that computes more than one block."""
    return grant.admission is Admission.NEW and not grant.start and grant.tokens > size and not grant.items


def _skip_block(grant: Grant, size: int, blocks: tuple[int, ...]) -> Grant:
    return grant._replace(start=size, tokens=grant.tokens - size, blocks=blocks)


def _can_skip(grant: Grant) -> bool:
    return grant.tokens > 1 and not grant.drafts and not grant.external and grant.admission is Admission.RUNNING
