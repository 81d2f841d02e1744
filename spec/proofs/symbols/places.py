"""Where in the text of `spec` a path decides: file, line and what stands there, for people who read a report."""

from __future__ import annotations

import linecache
import sys
from functools import cache
from pathlib import Path
from typing import Any

import spec

SPEC = Path(spec.__file__).parent
MACHINERY = (str(Path(__file__).parent), str(SPEC / "proofs" / "state" / "world.py"))
"""Files through which every decision goes, so that they tell nothing about it."""


def current_line() -> str:
    """The line that is being run, innermost first, of a rule of `spec` or of what a proof says in its place."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        file = frame.f_code.co_filename
        if file.startswith(str(SPEC)) and not file.startswith(MACHINERY):
            return _told(file, frame.f_lineno) + _conjunct(frame.f_locals)
        frame = frame.f_back
    return "?"


def _conjunct(names: dict[str, Any]) -> str:
    """Which conjunct of which guard, for all of them are asked in one line."""
    conjunct, action = names.get("conjunct"), getattr(names.get("self"), "action", None)
    return f", {conjunct.name} of {action}" if conjunct and action else ""


@cache
def _told(file: str, line: int) -> str:
    return f"{Path(file).relative_to(SPEC.parent)}:{line}: {linecache.getline(file, line).strip().rstrip(':')}"
