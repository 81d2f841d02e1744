"""Hunts seeded faults: which detector sees which, each by itself.

    $ python -m gpu_check.faults.hunt --write    # docs/faults.md

The plans are the reference scheduler's, in float64.  A run with a fault goes on after a finding, so that every
detector has its chance; the text is scripted, so that the plans stay the same.  The oracle is asked in runs
without poison, where memory holds finite numbers of others, as it does in production: it must see without help.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from conformance.adapters.reference import IMPLEMENTATION
from conformance.generate import Author, Seeded, draw_event
from conformance.lockstep import Judge, Level
from gpu_check.detectors import Finding
from gpu_check.faults.table import FAULTS, PLAN, Fault
from gpu_check.inspector import Inspector
from gpu_check.relabel import high, relabelled
from gpu_check.runs import Setting, TensorSession
from spec.vocabulary import PROFILES, Config, StepPlan

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
DETECTORS = ("bounds", "poison", "written", "owner", "oracle")


class Scene(NamedTuple):
    """A configuration under pressure; `pool` is the number of blocks of the tensors, of which the last are used."""

    config: Config
    pool: int
    events: int = 50


SCENES = (
    Scene(Config(16, 4, 24, 4, 32), pool=16),
    Scene(Config(16, 3, 20, 4, 28, num_speculative_tokens=3), pool=16),
    Scene(Config(14, 4, 24, 4, 32, max_loras=2, max_num_encoder_input_tokens=8, encoder_cache_size=8), pool=14),
    Scene(Config(14, 4, 24, 4, 32, use_connector=True), pool=14),
    Scene(Config(10, 16, 40, 4, 60), pool=2100, events=30),
)


class Collecting(TensorSession):
    """A session that goes on after findings, as far as bounds allow."""

    found: set[str]

    def report(self, findings: Sequence[Finding], plan: StepPlan) -> None:
        self.found.update(finding.detector for finding in findings)
        if "bounds" in self.found:
            raise OutOfReach


class OutOfReach(Exception):
    """A bound was broken: nothing behind it means anything."""


@cache
def hunt(fault: Fault | None) -> frozenset[str]:
    """The detectors that see a fault in any scene."""
    found: set[str] = set()
    for scene in SCENES:
        found |= {seen for seen in _run(fault, scene, poison=True) if seen != "oracle"}
        found |= {seen for seen in _run(fault, scene, poison=False) if seen == "oracle"}
    return frozenset(found)


def _run(fault: Fault | None, scene: Scene, *, poison: bool) -> set[str]:
    """What is seen in one scene."""
    config, naming = scene.config, high(scene.config.num_blocks, scene.pool)
    executor = Setting(pad_to=4, blocks=scene.pool).executor(config)
    if not poison:
        generator = torch.Generator().manual_seed(0)
        for cache_tensor in (executor.cache.keys, executor.cache.values):
            cache_tensor.normal_(generator=generator)
    inspector = Inspector(executor, poison=poison)
    names = relabelled(naming)
    relabel = names
    if fault is not None and fault.stage is PLAN:
        change = fault.change(executor.config)
        relabel = lambda plan: change(names(plan))  # noqa: E731
    elif fault is not None and fault.stage.install is not None:
        fault.stage.install(inspector, fault.change)
    judge = Judge(PROFILES["vllm-0.8.5"], Level.LAWFUL)
    session = Collecting(IMPLEMENTATION, config, judge, inspector, relabel)
    session.found = set()
    draw, author = Seeded("faults"), Author(config, IMPLEMENTATION.capabilities)
    try:
        for _ in range(scene.events):
            session.apply(draw_event(draw, author, session.observer))
    except OutOfReach:
        pass
    return session.found


# --- the page ----------------------------------------------------------------------------------------


def row(fault: Fault) -> str:
    """One line of the page."""
    seen = hunt(fault)
    marks = " | ".join("x" if name in seen else "" for name in DETECTORS)
    return f"| {fault.name} | {fault.stage.name} | {fault.sentence} | {marks} |"


def page() -> str:
    return "\n".join([*head(), *(row(fault) for fault in FAULTS)]) + "\n"


HEAD = """# Seeded faults

Each line is a fault in a plan or in the executor, and which detectors see it, each by itself.

| detector | sees |
|---|---|
| bounds | an index that leads out of the pool or of a table, or to a block never handed out; asked before any read |
| poison | something that is not finite: blocks hold NaN from when they are handed out until they are written |
| written | a slot that does not hold, bit for bit, what was to be written there |
| owner | a slot that is read and holds something else: the shadow memory of `spec/`, slot by slot |
| oracle | numbers that are off, in runs without poison, where memory holds the finite numbers of others |

Written by `python -m gpu_check.faults.hunt --write`.
"""


def head() -> Iterator[str]:
    caught = sum(bool(hunt(fault)) for fault in FAULTS)
    yield from HEAD.splitlines()
    yield ""
    yield f"{len(FAULTS)} faults, {caught} caught."
    yield ""
    yield f"| fault | in | what goes wrong | {' | '.join(DETECTORS)} |"
    yield f"|{'---|' * (3 + len(DETECTORS))}"


def main() -> None:
    """Prints the page, or writes it."""
    torch.set_num_threads(1)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page())
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
