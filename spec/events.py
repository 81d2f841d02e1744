"""What can happen to a scheduler: events, in the order in which a run applies them.

An event depends on no implementation.  A request brings along what the model will say to it, so any
subsequence of a run is a run.
"""

from __future__ import annotations

from dataclasses import dataclass

from spec.model import Script
from spec.vocabulary import Request


@dataclass(frozen=True)
class Add:
    """A client sends a request; the script is what the model will say to it."""

    request: Request
    script: Script


@dataclass(frozen=True)
class Abort:
    """A client goes away."""

    request_id: str


@dataclass(frozen=True)
class GrammarReady:
    """The grammar of a request has been compiled."""

    request_id: str


@dataclass(frozen=True)
class Reset:
    """The prefix cache is reset, if that is possible."""


@dataclass(frozen=True)
class StepEvent:
    """One step: schedule, let the model answer, commit."""


Event = Add | Abort | GrammarReady | Reset | StepEvent
