"""Known deviations: what a release is known to do against the laws or the spec, with its evidence.

A listed deviation is tolerated where it shows, and its trace must show it: one that no longer does fails the
run, and so does a violation that is not listed.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec

from spec.laws import LAW_BY_ID, Violation
from spec.vocabulary import QUIRKS, Config, Profile

DIRECTORY = Path(__file__).parent / "deviations"
TRACES = Path(__file__).parent / "traces" / "deviations"


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
    only_with  a field of the configuration that must be set for it to be this one
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
    only_with: str | None = None
    issue: str | None = None
    since: str | None = None

    def matches(self, violation: Violation, config: Config) -> bool:
        if self.only_with is not None and not getattr(config, self.only_with):
            return False
        pattern = ".*".join(re.escape(part) for part in self.signature.split("*"))
        return violation.law == self.law and re.fullmatch(pattern, violation.signature) is not None


class KnownDeviations:
    """The deviations of one release."""

    def __init__(self, name: str, entries: tuple[Deviation, ...] = ()) -> None:
        self.name = name
        self.entries = entries

    def match(self, violation: Violation, config: Config) -> Deviation | None:
        return next((entry for entry in self.entries if entry.matches(violation, config)), None)

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
        if entry.only_with is not None and entry.only_with not in Config.__slots__:
            raise BadDeviations(f"{path.name}: {entry.id}: unknown field {entry.only_with!r} of the configuration")
        if entry.law.isalpha() and entry.law not in LAW_BY_ID:
            raise BadDeviations(f"{path.name}: {entry.id}: unknown law {entry.law!r}")
    if len({entry.id for entry in entries}) != len(entries):
        raise BadDeviations(f"{path.name}: an id stands twice")
    return KnownDeviations(name, entries)
