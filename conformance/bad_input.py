"""How a bad line of a file is told: the field first, then what is wrong with it."""

from __future__ import annotations

import msgspec


def field_first(error: msgspec.DecodeError) -> str:
    """What msgspec found, as in `hash_ids[1]: Expected int, got str`."""
    problem, at, path = str(error).replace("`", "").partition(" - at $.")
    if at:
        return f"{path}: {problem}"
    for words in ("Object missing required field ", "Object contains unknown field "):
        if problem.startswith(words):
            return f"{problem.removeprefix(words)}: is {'missing' if 'missing' in words else 'unknown'}"
    return problem
