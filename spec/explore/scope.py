"""What a search is about: a configuration, who may come, what may happen.

A scope is finite because its requests are: each has one prompt, one length and one script, and comes at most
once, or again only after it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from spec.events import Add
from spec.model import Script
from spec.vocabulary import PROFILES, Config, Profile, Request

STEPS = ("step", "add")
"""What may happen in the plainest scopes."""


@dataclass(frozen=True)
class Scope:
    """A search, as data.

    offers     the requests that may come, in any order
    allowed    kinds of moves, from `spec.moves.KINDS`
    again      whether a request may come again after it has ended, so that runs never end
    quirks     quirks of the profile, where a premise is dropped
    tolerated  laws that the dropped premise breaks
    """

    name: str
    about: str
    config: Config
    offers: tuple[Add, ...]
    allowed: tuple[str, ...] = STEPS
    again: bool = False
    quirks: frozenset[str] = frozenset()
    tolerated: frozenset[str] = frozenset()

    @cached_property
    def profile(self) -> Profile:
        return Profile(PROFILES["vllm-0.8.5"].name, self.quirks)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(offer.request.request_id for offer in self.offers)

    @cached_property
    def index_of(self) -> dict[str, int]:
        return {request_id: index for index, request_id in enumerate(self.ids)}

    @cached_property
    def twins(self) -> tuple[tuple[int, ...], ...]:
        """Offers that differ in their id alone, by index: what renaming of requests may exchange."""
        groups: dict[tuple[Request, Script], list[int]] = {}
        for index, offer in enumerate(self.offers):
            groups.setdefault((replace(offer.request, request_id=""), offer.script), []).append(index)
        return tuple(tuple(group) for group in groups.values())

    def offer(self, request_id: str) -> Add:
        return self.offers[self.index_of[request_id]]


def ask(name: str, prompt: str | Sequence[int], most: int, says: str = "", **more: object) -> Add:
    """An offer: prompt and answer as digits, for short tables."""
    drafts = more.pop("drafts", ())
    request = Request(name, tuple(map(int, prompt)), most, **more)  # type: ignore[arg-type]
    return Add(request, Script(tuple(map(int, says)), drafts))  # type: ignore[arg-type]
