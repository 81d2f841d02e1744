"""`pytest conformance/`: options, the header, the fixtures, and the report at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance import arrivals, coverage, deviations
from conformance.lockstep import Judge, Level
from conformance.options import BAD_INPUT, DEFAULT, add_impl
from conformance.protocol import CAPABILITIES, Implementation, UnknownImplementation, load
from conformance.smoke import first_problem
from conformance.walk import Tally
from spec.vocabulary import PROFILES


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("schedspec")
    add_impl(group)
    group.addoption("--profile", default="vllm-0.8.5", choices=sorted(PROFILES), help="the rules of which release")
    group.addoption("--class", dest="level", default="identical", choices=[level.value for level in Level])
    group.addoption(
        "--workload", type=Path, metavar="FILE", help="also drive the implementation with this request trace"
    )
    group.addoption("--time-limit", type=float, default=20.0, metavar="SECONDS", help="for every answer of an adapter")
    group.addoption(
        "--failures", type=Path, default=Path("failures"), metavar="DIR", help="where failing runs are written"
    )


class Run:
    """What this run is about, and what it did so far."""

    def __init__(self, config: pytest.Config) -> None:
        sys.path.insert(0, str(config.invocation_params.dir))  # where a package.module:factory is most often
        self.names: list[str] = config.getoption("--impl") or [DEFAULT]
        self.workload: Path | None = config.getoption("--workload")
        try:
            self.implementations = {name: load(name) for name in self.names}
            self.known = {name: deviations.load(found.deviations) for name, found in self.implementations.items()}
            self.arrivals = arrivals.read(self.workload) if self.workload else []
        except (UnknownImplementation, deviations.BadDeviations, arrivals.BadWorkload) as error:
            pytest.exit(f"schedspec: {error}", returncode=BAD_INPUT)
        self.level = Level(config.getoption("level"))
        self.profile = PROFILES[config.getoption("--profile")]
        self.time_limit_s: float = config.getoption("--time-limit")
        self.tallies = {name: Tally() for name in self.names}

    def judge(self, implementation: Implementation) -> Judge:
        return Judge(self.profile, self.level, self.known[implementation.name], self.time_limit_s)


_RUN: pytest.StashKey[Run] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_RUN] = Run(config)


def pytest_report_header(config: pytest.Config) -> list[str]:
    run = config.stash[_RUN]
    lines = [f"schedspec: profile {run.profile.name}, class {run.level.value}"]
    for name, implementation in run.implementations.items():
        listed = len(run.known[name].entries)
        cannot = ", ".join(sorted(CAPABILITIES.keys() - implementation.capabilities)) or "nothing"
        lines.append(f"under test: {name}, {listed} known deviations; unsupported, so left out: {cannot}")
        lines.extend(f"  {line}" for line in implementation.header)
    return lines


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The suite's own tests run only beside the embedded reference."""
    own = {"selftest"} & {part.name for part in (collection_path, *collection_path.parents)}
    return True if own and config.stash[_RUN].names != [DEFAULT] else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "implementation" in metafunc.fixturenames:
        metafunc.parametrize("implementation", metafunc.config.stash[_RUN].names, indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "test_smoke" not in item.nodeid)


# --- fixtures ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def smoke_problems() -> dict[str, str | None]:
    return {}


@pytest.fixture
def implementation(request: pytest.FixtureRequest, smoke_problems: dict[str, str | None]) -> Implementation:
    """The implementation under test; one that fails the smoke test is not tried any further."""
    run = request.config.stash[_RUN]
    found = run.implementations[request.param]
    if found.name not in smoke_problems:
        smoke_problems[found.name] = first_problem(found, run.time_limit_s)
    if smoke_problems[found.name] is not None and "test_smoke" not in request.node.nodeid:
        pytest.fail(f"the adapter does not pass the smoke test: {smoke_problems[found.name]}", pytrace=False)
    return found


@pytest.fixture
def judge(request: pytest.FixtureRequest, implementation: Implementation) -> Judge:
    return request.config.stash[_RUN].judge(implementation)


@pytest.fixture
def tally(request: pytest.FixtureRequest, implementation: Implementation) -> Tally:
    """Where a test counts what its sessions did."""
    return request.config.stash[_RUN].tallies[implementation.name]


@pytest.fixture(scope="session")
def workload_rows(request: pytest.FixtureRequest) -> Sequence[arrivals.Arrival]:
    """The rows of `--workload`; a bad one was refused before anything ran."""
    return request.config.stash[_RUN].arrivals


@pytest.fixture(scope="session")
def failures(request: pytest.FixtureRequest) -> Path:
    directory: Path = request.config.getoption("--failures")
    return directory


# --- the report, also with workers ---------------------------------------------------------------


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["schedspec"] = {
            name: [t.sessions, t.steps, t.events, [[*row, n] for row, n in t.reached.items()], dict(t.shown)]
            for name, t in session.config.stash[_RUN].tallies.items()
        }


def pytest_testnodedown(node: Any, error: object) -> None:
    for name, (sessions, steps, events, reached, shown) in node.workeroutput.get("schedspec", {}).items():
        tally = node.config.stash[_RUN].tallies[name]
        tally.sessions += sessions
        tally.steps += steps
        tally.events += events
        tally.reached.update(Counter({(action, outcome): n for action, outcome, n in reached}))
        tally.shown.update(shown)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    run = config.stash[_RUN]
    for name, tally in run.tallies.items():
        if not tally.sessions:
            continue
        terminalreporter.section(f"what the runs against {name} reached")
        terminalreporter.line(f"{tally.sessions} sessions, {tally.steps} steps, {tally.events} events")
        for line in coverage.lines(tally.reached, run.implementations[name].capabilities):
            terminalreporter.line(line)
        for deviation, count in sorted(tally.shown.items()):
            terminalreporter.line(f"known deviation {deviation}: shown {count} times")
