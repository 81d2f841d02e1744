"""Outcomes that no committed scope reaches, each with the reason why it cannot be reached there."""

from __future__ import annotations

from collections.abc import Mapping

UNREACHED: Mapping[tuple[str, str], str] = {}
"""Empty: the committed scopes take every row of `spec.outcomes.OUTCOMES`."""
