"""What checking costs beside what is checked: (spec + laws + observer) / (schedule + update), in one run.

    $ python conformance/benchmarks/check_cost.py --impl vllm

Drives decoding requests in lockstep and takes the median over steps of each share, so that a pause of the
machine falls on one step only.  `adapter` is the translation between the implementation and the suite; `spec`
includes counting again what it counts.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.table import Table

from conformance.lockstep import touched_blocks
from conformance.protocol import load
from spec import laws
from spec.model import Script, answer
from spec.observer import Observer
from spec.recount import recount
from spec.scheduler import Oracle
from spec.vocabulary import PROFILES, Config, Request

T = TypeVar("T")

WARM_UP_STEPS = 20
INNER = {"schedule": "schedule", "update_from_output": "commit"}
"""Methods of the scheduler inside an adapter, and the call of the protocol that leads to each."""


class Stopwatch:
    """Microseconds of each share, step by step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def begin_step(self) -> None:
        self.steps.append(defaultdict(float))

    def time(self, share: str, function: Callable[..., T], *arguments: object) -> T:
        start = time.perf_counter()
        result = function(*arguments)
        self.steps[-1][share] += (time.perf_counter() - start) * 1e6
        return result

    def watch(self, owner: Any, method: str, share: str) -> None:
        function = getattr(owner, method)
        setattr(owner, method, lambda *arguments: self.time(share, function, *arguments))

    def median(self, share: str) -> float:
        return statistics.median(step[share] for step in self.steps[WARM_UP_STEPS:])


def measure(impl: str, running: int, num_blocks: int, steps: int) -> dict[str, float]:
    """Median microseconds per step of each share, with `running` requests decoding."""
    config = Config(num_blocks, 16, max(8192, running), max(1024, running), 16384)
    scheduler = load(impl).factory(config)
    oracle, observer, watch = Oracle(config, PROFILES["vllm-0.8.5"]), Observer(config), Stopwatch()
    inner = getattr(scheduler, "_scheduler", None)
    for method in INNER if inner is not None else ():
        watch.watch(inner, method, "real")
    scripts = {}
    for number in range(running):
        request = Request(f"r{number}", tuple(range(number * 64, number * 64 + 32 + number % 16)), 8192)
        scripts[request.request_id] = Script(range(10**6, 10**6 + 8192))
        for side in (scheduler, oracle, observer):
            side.add(request)
    gc.collect()
    gc.freeze()
    for _ in range(WARM_UP_STEPS + steps):
        watch.begin_step()
        _step(scheduler, oracle, observer, scripts, watch)
    gc.unfreeze()
    shares = {share: watch.median(share) for share in ("outer", "real", "spec", "observer", "laws")}
    if inner is None:
        shares["real"] = shares["outer"]
    return shares


def _step(scheduler: Any, oracle: Oracle, observer: Observer, scripts: dict[str, Script], watch: Stopwatch) -> None:
    due = watch.time("spec", oracle.schedule)
    plan = watch.time("outer", scheduler.schedule)
    broken = watch.time("laws", laws.check_plan, observer, plan)
    step = watch.time("observer", observer.apply, plan)
    broken += watch.time("laws", laws.check_step, observer, step)
    assert watch.time("laws", due.__eq__, plan), "the two sides differ"
    output = answer(observer.config, observer, scripts, plan)
    due_result = watch.time("spec", oracle.commit, due, output)
    result = watch.time("outer", scheduler.commit, plan, output)
    broken += watch.time("laws", laws.check_answer, observer, step, result)
    seen = watch.time("observer", observer.settle, step, output, result)
    broken += watch.time("laws", laws.check_result, observer, seen)
    assert watch.time("laws", due_result.__eq__, result), "the two sides differ"
    touched = touched_blocks(step, observer.config.block_size)
    requests = [grant.request_id for grant in plan.grants]
    broken += watch.time("spec", recount, oracle.state, touched, requests)
    inspection = watch.time("outer", scheduler.inspect, touched)
    if inspection is not None:
        broken += watch.time("laws", laws.check_inspection, observer, inspection)
    assert not broken, broken[0]


def main(
    impl: Annotated[str, typer.Option(help="the implementation to check")] = "vllm",
    blocks: Annotated[int, typer.Option(help="blocks of the pool; ten times as many are tried as well")] = 100_000,
    steps: Annotated[int, typer.Option(help="steps to measure in each case")] = 200,
) -> None:
    """Prints microseconds per running request and step, and the ratio of checking to what is checked."""
    table = Table(title=f"checking {impl}, microseconds per running request and step")
    for column in ("blocks", "running", "real", "adapter", "spec", "observer", "laws", "checking / real"):
        table.add_column(column, justify="right")
    for num_blocks in (blocks, 10 * blocks):
        for running in (8, 128, 1024):
            shares = measure(impl, running, num_blocks, steps)
            checking = shares["spec"] + shares["observer"] + shares["laws"]
            shares["adapter"] = shares["outer"] - shares["real"]
            cells = [f"{shares[share] / running:.2f}" for share in ("real", "adapter", "spec", "observer", "laws")]
            table.add_row(f"{num_blocks:,}", f"{running:,}", *cells, f"{checking / shares['real']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
