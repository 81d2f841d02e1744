"""`schedspec`: replay traces, run workloads, walk for hours, search every small state, generate.

Exit codes: 0 when everything holds, 1 at a violation, 2 for an input that cannot be used, told in one line;
130 for a search that was interrupted, after its report.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from conformance import deviations, exploration, exploration_view, generation_view, pages, report, trace
from conformance.arrivals import FORMATS, BadWorkload, read
from conformance.campaign import campaign
from conformance.lockstep import Failure, Judge, Level
from conformance.protocol import Implementation, UnknownImplementation, load
from conformance.record import save
from conformance.replay import Unsupported, replay
from conformance.smoke import first_problem
from conformance.walk import FailedRun, Tally, walk
from conformance.workload import DEFAULT_CONFIG, DEFAULT_SCALE, FailedWorkload, drive, fit
from reference.model_config import DTYPES, BadModel, ModelConfig
from reference.placement import place
from spec.explore.search import DEFAULT_LIMIT
from spec.validity import InvalidInput, check_config
from spec.vocabulary import PROFILES, Config, Profile, Refused

VIOLATION, BAD_INPUT, INTERRUPTED = 1, 2, 130
DEFAULT_PROFILE = "vllm-0.8.5"

main = typer.Typer(
    name="schedspec",
    help="Hold a paged request scheduler against the checked specification of vLLM V1.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Impl = Annotated[str, typer.Option("--impl", metavar="NAME", help="reference, vllm, or package.module:factory")]
ProfileName = Annotated[str, typer.Option("--profile", metavar="PROFILE", help="the rules of which release")]
LevelName = Annotated[str, typer.Option("--class", metavar="CLASS", help=", ".join(Level))]
TimeLimit = Annotated[float, typer.Option("--time-limit", min=0.001, help="seconds for every answer of an adapter")]
OwnProfile = Annotated[str | None, typer.Option("--profile", metavar="PROFILE", help="instead of the trace's own")]
OwnLevel = Annotated[str | None, typer.Option("--class", metavar="CLASS", help="instead of the trace's own")]

Rows = Annotated[Path, typer.Option("--workload", metavar="FILE", help="an Azure CSV or Mooncake JSON Lines file")]
Format = Annotated[str, typer.Option("--format", help=f"auto, {', '.join(FORMATS)}")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="read so many requests only")]
Scale = Annotated[int, typer.Option("--scale", help="keep every N-th token of prompts and outputs")]
Speed = Annotated[
    float | None, typer.Option("--speed", help="ms of the trace a step; by default the pool is just full")
]
Blocks = Annotated[int, typer.Option("--blocks", help="blocks of the pool")]
BlockSize = Annotated[int, typer.Option("--block-size", help="tokens of a block")]
Budget = Annotated[int, typer.Option("--budget", help="tokens of a step")]
Seats = Annotated[int, typer.Option("--seats", help="requests that may run")]
ModelLen = Annotated[int, typer.Option("--model-len", help="tokens of a request")]
Threshold = Annotated[int, typer.Option("--threshold", help="tokens of one prompt in a step, 0 for no such limit")]


class BadOption(ValueError):
    """An option that names nothing; the text names the option and what it can be."""


@contextmanager
def _one_line_for_bad_input() -> Iterator[None]:
    try:
        yield
    except (
        BadModel,
        BadOption,
        BadWorkload,
        exploration.UnknownScope,
        InvalidInput,
        Refused,
        UnknownImplementation,
        deviations.BadDeviations,
        trace.BadTrace,
    ) as error:
        problem = str(error)
    else:
        return
    typer.echo(f"schedspec: {' '.join(problem.split())}", err=True)
    raise typer.Exit(BAD_INPUT)


def _profile(name: str) -> Profile:
    if name not in PROFILES:
        raise BadOption(f"--profile {name}: not one of {', '.join(PROFILES)}")
    return PROFILES[name]


def _level(name: str) -> Level:
    if name not in list(Level):
        raise BadOption(f"--class {name}: not one of {', '.join(Level)}")
    return Level(name)


def _under_test(name: str, profile: str, level: str, time_limit_s: float) -> tuple[Implementation, Judge]:
    implementation = load(name)
    known = deviations.load(implementation.deviations)
    return implementation, Judge(_profile(profile), _level(level), known, time_limit_s)


def _begin(console: Console, implementation: Implementation, judge: Judge) -> None:
    """Says what is under test, and whether its adapter works at all."""
    report.show_implementation(console, implementation, judge)
    problem = first_problem(implementation, judge.time_limit_s)
    if problem is not None:
        report.plain(console, f"FAILED smoke test, so the adapter is wrong: {problem}")
        raise typer.Exit(VIOLATION)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal's standard error, silent elsewhere; yields what sets how much is done."""
    console = Console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.update(task, completed=done)


@main.callback()
def _find_adapters() -> None:
    """Hold a paged request scheduler against the checked specification of vLLM V1."""
    sys.path.insert(0, os.getcwd())  # where a package.module:factory is most often


@main.command("replay")
def replay_traces(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="trace files")],
    impl: Impl = "reference",
    profile: OwnProfile = None,
    level: OwnLevel = None,
    time_limit: TimeLimit = 60.0,
) -> None:
    """Replay traces.

    One that needs what the implementation cannot do is unsupported, never passed.
    """
    console = Console()
    failed = supported = 0
    with _one_line_for_bad_input():
        implementation = load(impl)
        known = deviations.load(implementation.deviations)
        runs = [(path, each) for path in traces for each in trace.read_all(path)]
        judges = [
            Judge(_profile(profile or t.header.profile), _level(level or t.header.level), known, time_limit)
            for _, t in runs
        ]
    for (path, each), judge in zip(runs, judges, strict=True):
        try:
            session = replay(implementation, judge, each)
        except Unsupported as unsupported:
            report.plain(console, f"unsupported {path}: {unsupported}")
            continue
        except Failure as failure:
            failed += 1
            report.show_failure(console, failure, f"{path}, event {failure.event_number}")
        else:
            report.plain(console, f"ok {path}: {session.steps} steps, class {judge.level}")
            report.show_deviations(console, session.shown)
        supported += 1
    if failed:
        raise typer.Exit(VIOLATION)
    if not supported:
        typer.echo(f"schedspec: --impl {impl}: supports none of these traces", err=True)
        raise typer.Exit(BAD_INPUT)


@main.command("run")
def run_workload(
    workload: Rows,
    impl: Impl = "reference",
    format: Format = "auto",
    limit: Limit = None,
    scale: Scale = DEFAULT_SCALE,
    speed: Speed = None,
    blocks: Blocks = DEFAULT_CONFIG.num_blocks,
    block_size: BlockSize = DEFAULT_CONFIG.block_size,
    budget: Budget = DEFAULT_CONFIG.max_num_batched_tokens,
    seats: Seats = DEFAULT_CONFIG.max_num_seqs,
    model_len: ModelLen = DEFAULT_CONFIG.max_model_len,
    threshold: Threshold = DEFAULT_CONFIG.long_prefill_token_threshold,
    profile: ProfileName = DEFAULT_PROFILE,
    level: LevelName = Level.IDENTICAL.value,
    time_limit: TimeLimit = 60.0,
) -> None:
    """Drive an implementation with a public request trace.

    Every step is judged in lockstep; by default requests arrive as fast as the pool can serve them.
    """
    console = Console()
    with _one_line_for_bad_input():
        implementation, judge = _under_test(impl, profile, level, time_limit)
        config = Config(blocks, block_size, budget, seats, model_len, threshold)
        fitted = fit(read(workload, format, limit), config, scale, speed)
    _begin(console, implementation, judge)
    try:
        with _bar("requests", len(fitted.arrivals)) as done:
            summary = drive(implementation, judge, fitted, done)
    except FailedWorkload as failed:
        report.show_failed_workload(console, failed)
        raise typer.Exit(VIOLATION) from None
    report.show_summary(console, summary, f"ok {workload}, {fitted.ms_per_step:.3g} ms a step")


@main.command("walk")
def walk_for_long(
    impl: Impl = "reference",
    steps: Annotated[int, typer.Option(min=1, help="scheduler steps to take")] = 100_000,
    seed: Annotated[str, typer.Option(help="anything; equal seeds walk alike")] = "0",
    failures: Annotated[Path, typer.Option(metavar="DIR", help="where a failing run is written")] = Path("failures"),
    profile: ProfileName = DEFAULT_PROFILE,
    level: LevelName = Level.IDENTICAL.value,
    time_limit: TimeLimit = 60.0,
) -> None:
    """Walk at random under pressure.

    A failure is made short and written as a trace.
    """
    console, tally = Console(), Tally()
    with _one_line_for_bad_input():
        implementation, judge = _under_test(impl, profile, level, time_limit)
    _begin(console, implementation, judge)
    try:
        with _bar("steps", steps) as done:
            walk(implementation, judge, seed, steps, tally, lambda taken: done(tally.steps))
    except FailedRun as failed:
        report.show_failure(console, failed.failure, f"session {tally.sessions}, event {failed.failure.event_number}")
        try:
            report.plain(console, f"written to {save(implementation, judge, failed, failures)}")
        except OSError as error:
            typer.echo(f"schedspec: {error.filename}: {error.strerror}, so nothing is written", err=True)
        raise typer.Exit(VIOLATION) from None
    report.plain(console, "ok")
    report.show_tally(console, tally)


@main.command("explore")
def explore_scopes(
    scopes: Annotated[list[str] | None, typer.Argument(metavar="SCOPE...", help="names or patterns")] = None,
    workers: Annotated[int, typer.Option(min=1, help="processes, each with a scope of its own")] = 1,
    limit: Annotated[int, typer.Option(min=1, help="states of a scope; beyond, it is not complete")] = DEFAULT_LIMIT,
    renaming: Annotated[bool, typer.Option(help="count states up to renaming of blocks and equal requests")] = True,
    report_file: Annotated[Path | None, typer.Option("--report", metavar="FILE", help="write a JSON report")] = None,
    failures: Annotated[Path, typer.Option(metavar="DIR", help="where the shortest failing runs go")] = Path(
        "failures"
    ),
) -> None:
    """Search small scopes exhaustively: all laws in every state, and liveness.

    Without names: the committed scopes, those where a premise is dropped, and the family.  Ctrl-C stops and reports.
    """
    console = Console()
    with _one_line_for_bad_input():
        found = exploration.chosen(scopes or [])
    with exploration_view.bar(found) as show:
        result = campaign(found, exploration.Settings(renaming, limit, failures), workers=workers, progress=show)
    exploration_view.show(console, result)
    if report_file is not None:
        report_file.write_bytes(exploration.encode(result))
    if any(each.failed for each in result.searched):
        raise typer.Exit(VIOLATION)
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)


@main.command("generate")
def generate_text(
    requests: Annotated[int, typer.Option(min=1, help="how many prompts")] = 8,
    tokens: Annotated[int, typer.Option(min=1, help="tokens to generate for each")] = 24,
    blocks: Blocks = 24,
    block_size: BlockSize = 4,
    budget: Budget = 32,
    seats: Seats = 6,
    model_len: ModelLen = 64,
    threshold: Threshold = 0,
    drafts: Annotated[int, typer.Option(help="tokens that prompt lookup may propose")] = 0,
    heads: Annotated[int, typer.Option(help="query heads of the model")] = ModelConfig().heads,
    kv_heads: Annotated[int, typer.Option(help="heads of keys and values")] = ModelConfig().kv_heads,
    head_size: Annotated[int, typer.Option(help="elements of a head")] = ModelConfig().head_size,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    dtype: Annotated[str, typer.Option(help=", ".join(DTYPES))] = "float32",
    attention: Annotated[str, typer.Option(help="paged or triton")] = "paged",
    seed: Annotated[int, typer.Option(help="of prompts and weights")] = 0,
    delay: Annotated[float, typer.Option(min=0, help="seconds to look at each step on a terminal")] = 0.1,
) -> None:
    """Let the reference engine generate: scheduler, paged cache and a small random model.

    Prints each step with its budget and preemptions; needs the extra `torch`.
    """
    with _one_line_for_bad_input():
        config = check_config(Config(blocks, block_size, budget, seats, model_len, threshold, True, drafts))
        model = ModelConfig(heads=heads, kv_heads=kv_heads, head_size=head_size, seed=seed)
        place(device, dtype)  # before what needs torch is imported
        from reference.engine import Engine

        engine = Engine(model, config, device, dtype, attention)
        prompts = generation_view.prompts(requests, config, model.vocabulary, tokens, seed)
        for prompt in prompts:
            engine.add(prompt)
    generation_view.run(Console(), engine, prompts, delay)


@main.command("prove")
def prove_the_laws(
    only: Annotated[
        str, typer.Option("--only", metavar="NAME", help="a theorem, or part of the name of an action")
    ] = "",
    as_json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="write everything there, and all that each mutant breaks"),
    ] = None,
    mutants: Annotated[bool, typer.Option(help="also break the actions, to see each proof fail")] = True,
    failures: Annotated[Path, typer.Option(metavar="DIR", help="where runs of counterexamples go")] = Path("failures"),
) -> None:
    """Prove the laws with Z3, about the very functions that run.

    Needs the extra `proofs`.
    """
    try:
        from conformance import proof_view, proofs
    except ModuleNotFoundError as missing:
        typer.echo(f"schedspec: {missing.name} is missing: pip install 'schedspec[proofs]'", err=True)
        raise typer.Exit(BAD_INPUT) from None
    with _one_line_for_bad_input():
        if not proofs.known(only):
            raise BadOption(f"--only {only}: no theorem and no action of that name")
    try:
        proved = proofs.run(_bar, only, mutants, as_json is not None, failures)
        if as_json is not None:
            as_json.write_bytes(proof_view.as_json(proved))
    except OSError as error:
        typer.echo(f"schedspec: {error.filename}: {error.strerror}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    if not proof_view.show(Console(), proved):
        raise typer.Exit(VIOLATION)


@main.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a line of a trace."""
    typer.echo(pages.schema(), nl=False)


@main.command("laws")
def print_laws() -> None:
    """Print the laws: ids and sentences."""
    Console().print(report.laws_table())
