"""`pytest gpu_check/`: options, the header, the fixtures, and the report at the end.

Without torch every module here is skipped, unless one of the options asks for tensors: then that is bad input.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conformance import deviations
from conformance.lockstep import Judge, Level
from conformance.options import BAD_INPUT, DEFAULT, add_impl
from conformance.protocol import Implementation, UnknownImplementation, load
from reference.model_config import DTYPES, BadModel
from reference.placement import installed, place
from spec.vocabulary import PROFILES

if TYPE_CHECKING:
    from gpu_check.runs import Setting, TensorSession

PROFILE = "vllm-0.8.5"
TIME_LIMIT_S = 60.0


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("schedspec")
    add_impl(group)
    group.addoption("--device", metavar="DEVICE", help="cpu (default) or cuda")
    group.addoption("--dtype", action="append", metavar="DTYPE", help=f"{', '.join(DTYPES)}; repeatable; default all")
    group.addoption("--attention", metavar="NAME", help="paged (default) or triton")


class Run:
    """What this run is about, and how close its numbers came to the bound."""

    def __init__(self, config: pytest.Config) -> None:
        sys.path.insert(0, str(config.invocation_params.dir))  # where a package.module:factory is most often
        self.names: list[str] = config.getoption("--impl") or [DEFAULT]
        self.device: str = config.getoption("--device") or "cpu"
        self.dtypes: list[str] = config.getoption("--dtype") or list(DTYPES)
        self.attention: str = config.getoption("--attention") or "paged"
        self.has_torch = installed("torch")
        asked = any(config.getoption(name) for name in ("--device", "--dtype", "--attention"))
        try:
            self.implementations = {name: load(name) for name in self.names}
            self.known = {name: deviations.load(found.deviations) for name, found in self.implementations.items()}
            if self.has_torch or asked:
                self._try_placement()
        except (UnknownImplementation, deviations.BadDeviations, BadModel) as error:
            pytest.exit(f"schedspec: {error}", returncode=BAD_INPUT)
        self.shares: dict[str, list[float]] = {}

    def _try_placement(self) -> None:
        for dtype in self.dtypes:
            place(self.device, dtype)
        from reference import attention

        attention.load(self.attention)


_RUN: pytest.StashKey[Run] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_RUN] = run = Run(config)
    if run.has_torch:
        import torch

        torch.set_num_threads(1)  # the tensors are tiny, and workers share the cores
        torch.backends.cuda.matmul.allow_tf32 = False


def pytest_report_header(config: pytest.Config) -> list[str]:
    run = config.stash[_RUN]
    lines = [f"tensors: {run.device}, {', '.join(run.dtypes)}, attention {run.attention}"]
    return lines + [f"plans of: {name}" for name in run.names]


class WithoutTorch(pytest.Module):
    """A module that cannot be imported without torch."""

    def collect(self) -> Any:
        pytest.skip("torch is not installed: pip install 'schedspec[torch]'", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return None if parent.config.stash[_RUN].has_torch else WithoutTorch.from_parent(parent, path=module_path)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Seeded faults are hunted only with the plans of the embedded reference."""
    return True if collection_path.name == "faults" and config.stash[_RUN].names != [DEFAULT] else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    run = metafunc.config.stash[_RUN]
    if "implementation" in metafunc.fixturenames:
        metafunc.parametrize("implementation", run.names, indirect=True)
    if "dtype" in metafunc.fixturenames:
        metafunc.parametrize("dtype", run.dtypes)


# --- fixtures ------------------------------------------------------------------------------------


@pytest.fixture
def implementation(request: pytest.FixtureRequest) -> Implementation:
    return request.config.stash[_RUN].implementations[request.param]


@pytest.fixture
def judge(request: pytest.FixtureRequest, implementation: Implementation) -> Judge:
    """Plans must be lawful, no more: which decisions they take is judged elsewhere.

    But which known deviation a breach is, and how a run goes on behind it, only the spec can tell.
    """
    known = request.config.stash[_RUN].known[implementation.name]
    level = Level.IDENTICAL if known.entries else Level.LAWFUL
    return Judge(PROFILES[PROFILE], level, known, TIME_LIMIT_S)


@pytest.fixture
def setting(request: pytest.FixtureRequest) -> Setting:
    """The device and the attention of this run; tests choose type and sizes."""
    from gpu_check.runs import Setting

    run = request.config.stash[_RUN]
    return Setting(device=run.device, attention=run.attention)


@pytest.fixture
def sessions(request: pytest.FixtureRequest) -> Iterator[list[TensorSession]]:
    """Where a test leaves its sessions, for the report."""
    left: list[TensorSession] = []
    yield left
    run = request.config.stash[_RUN]
    for session in left:
        numbers = session.inspector.numbers
        found = run.shares.setdefault(numbers.dtype_name, [0.0, 0, 0, 0])
        found[0] = max(found[0], numbers.largest_share)
        for column, count in enumerate((session.steps, numbers.tokens_compared, numbers.tokens_unsure), 1):
            found[column] += count


# --- the report, also with workers ---------------------------------------------------------------


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["gpu_check"] = session.config.stash[_RUN].shares


def pytest_testnodedown(node: Any, error: object) -> None:
    shares = node.config.stash[_RUN].shares
    for dtype, (share, *counts) in node.workeroutput.get("gpu_check", {}).items():
        before = shares.get(dtype, [0.0, 0, 0, 0])
        shares[dtype] = [max(share, before[0]), *(a + b for a, b in zip(counts, before[1:], strict=True))]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    shares = config.stash[_RUN].shares
    if not shares:
        return
    terminalreporter.section("how close the numbers came to the bound")
    for dtype, (share, steps, compared, unsure) in sorted(shares.items()):
        terminalreporter.line(
            f"{dtype}: {share:.2f} of the bound at most, in {steps:.0f} steps; {compared:.0f} tokens compared, "
            f"{unsure:.0f} too close to call"
        )
