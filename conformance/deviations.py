"""Known deviations: what a release is known to do against the laws or the spec, with its evidence.

A listed deviation is tolerated where it shows, and its trace must show it: one that no longer does fails the
run, and so does a violation that is not listed.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec

from spec.laws import LAW_BY_ID, Violation
from spec.outcomes import OUTCOMES
from spec.vocabulary import QUIRKS, Profile

DIRECTORY = Path(__file__).parent / "deviations"
TRACES = Path(__file__).parent / "traces" / "deviations"


_OUTCOMES = {f"{action}: {outcome}" for action, outcome in OUTCOMES}


class BadDeviations(ValueError):
    """A file of deviations that cannot be used; the text names file and entry."""


class Deviation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One known deviation.

    law        the law, or the rule, that it breaks
    signature  what a violation must carry to be this one; `*` stands for anything
    sentence   what the release does, in one sentence
    trace      id of the trace that shows it
    quirk      the quirk that makes the oracle follow; without one a run ends where the deviation shows
    ends       whether the run cannot go on behind it
    after      what must have happened in the run before: an outcome of the spec, or another deviation's id
    issue      public issue or pull request, where there is one
    since      first release known to do it
    """

    id: str
    law: str
    signature: str
    sentence: str
    trace: str
    quirk: str | None = None
    ends: bool = True
    after: str | None = None
    issue: str | None = None
    since: str | None = None

    def matches(self, violation: Violation, happened: Callable[[str], bool]) -> bool:
        if self.after is not None and not happened(self.after):
            return False
        pattern = ".*".join(re.escape(part) for part in self.signature.split("*"))
        return violation.law == self.law and re.fullmatch(pattern, violation.signature) is not None


class KnownDeviations:
    """The deviations of one release."""

    def __init__(self, name: str, entries: tuple[Deviation, ...] = ()) -> None:
        self.name = name
        self.entries = entries

    def match(self, violation: Violation, happened: Callable[[str], bool]) -> Deviation | None:
        """The first entry that the violation is; `happened` tells of an outcome or a deviation in this run."""
        return next((entry for entry in self.entries if entry.matches(violation, happened)), None)

    def profile(self, base: Profile) -> Profile:
        """The profile with the quirks that these deviations turn on."""
        return Profile(base.name, frozenset(entry.quirk for entry in self.entries if entry.quirk))


NONE = KnownDeviations("none")


def load(name: str | None) -> KnownDeviations:
    """The deviations in `deviations/<name>.toml`, none where there is no such file.  Raises BadDeviations."""
    if name is None or not (path := DIRECTORY / f"{name}.toml").exists():
        return NONE
    try:
        raw = tomllib.loads(path.read_text())
        entries = msgspec.convert(raw.get("deviation", []), tuple[Deviation, ...])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadDeviations(f"{path.name}: {error}") from error
    for entry in entries:
        if entry.quirk is not None and entry.quirk not in QUIRKS:
            raise BadDeviations(f"{path.name}: {entry.id}: unknown quirk {entry.quirk!r}")
        if entry.after is not None and entry.after not in _OUTCOMES | {other.id for other in entries}:
            raise BadDeviations(f"{path.name}: {entry.id}: after {entry.after!r} is neither an outcome nor an id")
        if entry.law.isalpha() and entry.law not in LAW_BY_ID:
            raise BadDeviations(f"{path.name}: {entry.id}: unknown law {entry.law!r}")
    if len({entry.id for entry in entries}) != len(entries):
        raise BadDeviations(f"{path.name}: an id stands twice")
    return KnownDeviations(name, entries)
