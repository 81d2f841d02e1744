"""Where tensors live and what they are made of: names from a command line, turned into torch's own.

Everything that can be wrong with them is told in one line, before anything is allocated.
"""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, NamedTuple

from reference.model_config import DTYPES, BadModel, ModelConfig
from spec.vocabulary import Config

if TYPE_CHECKING:
    import torch

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}


class Placement(NamedTuple):
    """A device and a type; `accumulate` is the type of norms, rotary angles and sums."""

    device: torch.device
    dtype: torch.dtype
    accumulate: torch.dtype


def installed(name: str) -> bool:
    """Whether a package can be imported; what only poses as a module, without a spec, cannot."""
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:
        return False


def place(device: str, dtype: str) -> Placement:
    """The placement that two names stand for; raises BadModel without torch, without CUDA, for an unknown type."""
    if not installed("torch"):
        raise BadModel("torch is not installed: pip install 'schedspec[torch]'")
    if dtype not in DTYPES:
        raise BadModel(f"--dtype {dtype}: not one of {', '.join(DTYPES)}")
    import torch

    try:
        found = torch.device(device)
    except RuntimeError:
        raise BadModel(f"--device {device}: not one of cpu, cuda") from None
    if found.type not in ("cpu", "cuda"):
        raise BadModel(f"--device {device}: not one of cpu, cuda")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise BadModel(f"--device {device}: torch {torch.__version__} finds no CUDA device")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise BadModel(f"--device {device}: there are {torch.cuda.device_count()} CUDA devices")
    accumulate = torch.float64 if dtype == "float64" else torch.float32
    return Placement(found, getattr(torch, dtype), accumulate)


def cache_bytes(model: ModelConfig, config: Config, dtype: str) -> int:
    """Bytes of keys and values of the whole pool, all layers together."""
    slots = config.num_blocks * config.block_size
    return 2 * model.layers * slots * model.kv_heads * model.head_size * BYTES[dtype]


def free_bytes(placement: Placement) -> int:
    """Bytes that can be allocated on the device at this moment."""
    if placement.device.type == "cuda":
        import torch

        free: int = torch.cuda.mem_get_info(placement.device)[0]
        return free
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_cache_fits(model: ModelConfig, config: Config, dtype: str, placement: Placement) -> None:
    """Raises BadModel where the pool is larger than what is free."""
    needed, free = cache_bytes(model, config, dtype), free_bytes(placement)
    if needed > free:
        raise BadModel(
            f"the cache of {config.num_blocks} blocks needs {needed / 2**30:.1f} GiB on {placement.device}, "
            f"{free / 2**30:.1f} GiB are free"
        )
