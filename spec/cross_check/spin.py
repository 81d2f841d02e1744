"""Runs SPIN on the Promela model of a core."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from spec.explore.scope import Scope

MODEL = Path(__file__).parent / "core.pml"

MOST_REQUESTS = 4

COMPILE = ("gcc", "-O2", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c")
"""One process, every step indivisible: there is nothing to reduce by partial order."""

RUN = ("./pan", "-n", "-m4000000", "-w24")
"""No list of unreached statements; a stack for the deepest of the cores; a hash table of 2^24 slots."""


class Count(NamedTuple):
    """What SPIN found: states and transitions of the scheduler, seconds of generating and compiling, of searching."""

    states: int
    transitions: int
    seconds_to_build: float
    seconds: float
    errors: int


class NoSpin(RuntimeError):
    """SPIN or a C compiler is not installed, or could not finish; the text says which."""


def missing() -> str:
    """What is missing to run SPIN, or empty."""
    return ", ".join(tool for tool in ("spin", "gcc") if shutil.which(tool) is None)


def definitions(scope: Scope) -> list[str]:
    """The sizes of a core, as definitions for the preprocessor."""
    config = scope.config
    sizes = {
        "N": len(scope.offers),
        "BLOCKS": config.num_blocks - 1,
        "SIZE": config.block_size,
        "BUDGET": config.max_num_batched_tokens,
        "SEATS": config.max_num_seqs,
        "LONGEST": config.max_model_len,
        "THRESHOLD": config.long_prefill_token_threshold,
        "AGAIN": int(scope.again),
        "ABORTS": int("abort" in scope.allowed),
    }
    for index in range(MOST_REQUESTS):
        request = scope.offers[index].request if index < len(scope.offers) else None
        sizes[f"P{index}"] = len(request.prompt_token_ids) if request else 0
        sizes[f"M{index}"] = request.max_tokens if request else 0
    return [f"-D{name}={value}" for name, value in sizes.items()]


def count(scope: Scope) -> Count:
    """Searches a core with SPIN, exhaustively.  Raises NoSpin."""
    if absent := missing():
        raise NoSpin(f"not installed: {absent}")
    with tempfile.TemporaryDirectory() as directory:
        start = time.perf_counter()
        _run(("spin", *definitions(scope), "-a", str(MODEL)), directory)
        _run(COMPILE, directory)
        built = time.perf_counter()
        said = _run(RUN, directory)
        searched = time.perf_counter()
    return _read(said, built - start, searched - built)


def _run(command: tuple[str, ...], directory: str) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoSpin(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def _read(said: str, seconds_to_build: float, seconds: float) -> Count:
    """SPIN counts the state before the model's own beginning too, and the transition out of it."""
    numbers = {what: int(number) for number, what in re.findall(r"(\d+) (states, stored|states, matched)", said)}
    errors = re.search(r"errors: (\d+)", said)
    if len(numbers) != 2 or errors is None or "max search depth too small" in said:
        raise NoSpin(f"no complete search: {said[-500:]}")
    stored, matched = numbers["states, stored"], numbers["states, matched"]
    return Count(stored - 1, stored + matched - 2, seconds_to_build, seconds, int(errors[1]))
