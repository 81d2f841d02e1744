"""What a person sees of the reference engine at work: each step, its budget, who was preempted, the texts.

A demonstration.  Prompts are random tokens that share prefixes, the model is random too: what is worth looking at is
how requests share a pool that is too small for all of them.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from conformance.report import plain
from spec.validity import check_request
from spec.vocabulary import Admission, Config, Request

if TYPE_CHECKING:
    from reference.engine import Engine, EngineStep


def prompts(count: int, config: Config, vocabulary: int, tokens: int, seed: int) -> list[Request]:
    """Requests of up to half the model length, cut from one text and continued by chance.  Raises InvalidInput."""
    draw = random.Random(seed)
    longest = max(config.max_model_len // 2, 1)
    shared = [draw.randrange(vocabulary) for _ in range(longest)]
    found = []
    for number in range(count):
        length, cut = draw.randint(1, longest), draw.randint(0, longest)
        own = [draw.randrange(vocabulary) for _ in range(longest)]
        text = (*shared[:cut], *own)[:length]
        request = Request(f"r{number}", text, max_tokens=min(tokens, config.max_model_len - length))
        found.append(check_request(request, config))
    return found


def run(console: Console, engine: Engine, requests: list[Request], delay_s: float) -> None:
    """Serves requests that were added; prints a line a step, and on a terminal shows who stands where."""
    steps = preempted = tokens = 0
    started = time.perf_counter()
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while engine.busy:
            step = engine.step()
            steps += 1
            preempted += len(step.plan.preempted)
            tokens += sum(len(said) for _, said in step.result.emitted)
            plain(console, step_line(steps, engine, step))
            if console.is_terminal:
                live.update(_picture(engine, step, requests), refresh=True)
                time.sleep(delay_s)
    for request in requests:
        plain(console, f"{request.request_id}: {' '.join(map(str, engine.texts[request.request_id]))}")
    rate = tokens / max(time.perf_counter() - started - steps * delay_s * console.is_terminal, 1e-9)
    plain(console, f"{steps} steps, {tokens} tokens, {preempted} preemptions, {rate:.0f} tokens a second")


def step_line(number: int, engine: Engine, step: EngineStep) -> str:
    """One step in one line: tokens of the budget, prompts and decodes, hits, preemptions, ends."""
    plan, config = step.plan, engine.executor.config
    used = sum(grant.tokens for grant in plan.grants)
    decodes = sum(grant.tokens == 1 for grant in plan.grants)
    hits = sum(grant.start for grant in plan.grants if grant.admission is not Admission.RUNNING)
    parts = [
        f"step {number}: {used} of {config.max_num_batched_tokens} tokens",
        f"{len(plan.grants) - decodes} chunks, {decodes} decodes",
        f"{engine.free_blocks} of {config.num_blocks - 1} blocks free",
    ]
    if hits:
        parts.append(f"{hits} tokens hit")
    if plan.preempted:
        parts.append(f"preempted {', '.join(plan.preempted)}")
    if step.result.finished:
        parts.append(f"finished {', '.join(end.request_id for end in step.result.finished)}")
    return " · ".join(parts)


def _picture(engine: Engine, step: EngineStep, requests: list[Request]) -> Group:
    """The budget of the step and the requests that are live, as bars."""
    config = engine.executor.config
    used = sum(grant.tokens for grant in step.plan.grants)
    table = Table("request", "state", "computed", "", "said", box=box.SIMPLE)
    table.add_row(
        "budget", "", f"{used}/{config.max_num_batched_tokens}", _bar(used, config.max_num_batched_tokens), ""
    )
    for request in requests:
        live = engine.scheduler.live.get(request.request_id)
        if live is not None:
            said = f"{len(engine.texts[request.request_id])}/{request.max_tokens}"
            known = len(live.tokens)
            bar = _bar(live.computed, known)
            table.add_row(request.request_id, live.status.value, f"{live.computed}/{known}", bar, said)
    return Group(Text("SchedSpec reference engine"), table)


def _bar(part: int, whole: int) -> ProgressBar:
    return ProgressBar(total=max(whole, 1), completed=part, width=40)
