"""How vLLM is brought up on a CPU without a download, and what that changes.

vLLM recognises its platform by the name of the installed distribution, which the CPU wheel on
PyPI does not carry.  So the CPU is named through vLLM's own extension point: an entry point of
the group `vllm.platform_plugins`, which stands in a temporary directory while vLLM is imported.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

SETTINGS: Mapping[str, str] = {
    "VLLM_TARGET_DEVICE": "cpu",
    "VLLM_PLUGINS": "schedspec_cpu",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "TORCHDYNAMO_DISABLE": "1",
}
"""Nothing is compiled here; without the last one, torch would look for a Triton of 1 GB at import."""

ADJUSTMENTS = (
    "platform: CpuPlatform, named by a platform plugin, because the CPU wheel is not recognised by its name",
    "model: a one-layer Llama config.json, no weights, no tokenizer; its class is registered with ModelRegistry",
    "configuration: one VllmConfig is validated for each combination of features, copied and given its own numbers",
    "block size: the configuration is validated with 16, all that CpuPlatform takes, and set after that",
    "encoder: budget and cache size are set on the scheduler, because a text model has none",
    "speculation: a real SpeculativeConfig (ngram, or eagle with a one-layer head); drafts come from the suite",
    "connector: a KVConnectorBase_V1 registered with KVConnectorFactory; it loads what the request says, at once",
    "grammar: a StructuredOutputBackend that accepts every token; its compilation ends when the suite says so",
    "logprobs: none are returned, the scheduler only passes them on",
)


def prepare() -> None:
    """Settings, platform, first import.  Raises ImportError where vLLM is missing or not on the CPU."""
    if find_spec("vllm") is None:
        raise ImportError("vLLM is not installed in this environment, see docs/vllm.md")
    os.environ.update(SETTINGS)
    with _platform_plugin():
        from vllm.platforms import current_platform
    if not current_platform.is_cpu():
        raise ImportError("vLLM was imported before the adapter and runs on another platform than the CPU")


def cpu_platform() -> str:
    """The entry point: the class that vLLM shall take as its platform."""
    return "vllm.platforms.cpu.CpuPlatform"


def release() -> str:
    """The installed release without its build suffix, as in `0.8.5`."""
    import vllm

    return str(vllm.__version__).partition("+")[0]


def header() -> tuple[str, ...]:
    """What is under test and what was adjusted to drive it, a line each."""
    import torch
    import vllm

    settings = " ".join(f"{name}={value}" for name, value in SETTINGS.items())
    return (
        f"vLLM {vllm.__version__}, Python {platform.python_version()}, torch {torch.__version__}",
        f"settings: {settings}",
        *ADJUSTMENTS,
    )


@contextmanager
def _platform_plugin() -> Iterator[None]:
    """A distribution of nothing but the entry point, installed for the length of the block."""
    with TemporaryDirectory() as site:
        info = Path(site, "schedspec_cpu-0.dist-info")
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: schedspec-cpu\nVersion: 0\n")
        (info / "entry_points.txt").write_text(
            f"[vllm.platform_plugins]\n{SETTINGS['VLLM_PLUGINS']} = {__name__}:{cpu_platform.__name__}\n"
        )
        sys.path.insert(0, site)
        try:
            yield
        finally:
            sys.path.remove(site)
