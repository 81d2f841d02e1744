"""What the command lines of both suites have in common; either may be collected first, or alone."""

from __future__ import annotations

import contextlib

import pytest

DEFAULT = "reference"
BAD_INPUT = 2


def add_impl(group: pytest.OptionGroup) -> None:
    """`--impl`, unless the other suite has added it."""
    with contextlib.suppress(ValueError):
        group.addoption(
            "--impl", action="append", metavar="NAME", help="reference, vllm, or package.module:factory; repeatable"
        )
