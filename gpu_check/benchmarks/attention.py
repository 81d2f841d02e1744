"""What paged attention costs, shape by shape, against what else the same machine does in the same run.

    $ python -m gpu_check.benchmarks.attention                    # CPU: paged / dense
    $ python -m gpu_check.benchmarks.attention --device cuda      # fraction of the measured copy bandwidth

On the CPU: the time of the paged path over that of torch's dense attention on the same lengths, KV already dense.
On CUDA: bytes that must move, over time, over the bandwidth of a device copy; beside it a plain gather of the
same pages.  With T new tokens, s bytes an element:

    bytes = 2 s Hkv D (sum kv_len + T) + 2 s Hq D T + 4 sum ceil(kv_len / block)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, NamedTuple

import torch
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from conformance.options import BAD_INPUT
from reference.attention import Attention, load
from reference.batch import Tables
from reference.model_config import BadModel
from reference.placement import place

ROUNDS = 7


class Shape(NamedTuple):
    """`rows` requests with `new` tokens each, behind a context up to `kv_len`."""

    name: str
    rows: int
    kv_len: int
    new: int = 1
    block_size: int = 16
    heads: int = 32
    kv_heads: int = 8
    head_size: int = 128

    def bytes_moved(self, element: int) -> int:
        tokens, context = self.rows * self.new, self.rows * self.kv_len
        kv = 2 * element * self.kv_heads * self.head_size * (context + tokens)
        pages = 4 * self.rows * -(-self.kv_len // self.block_size)
        return kv + 2 * element * self.heads * self.head_size * tokens + pages


SHAPES = {
    "cpu": (
        Shape("decode 64 x 512", 64, 512),
        Shape("decode 64 x 512, page 1", 64, 512, block_size=1),
        Shape("decode 64 x 512, page 128", 64, 512, block_size=128),
        Shape("decode 8 x 4096", 8, 4096),
        Shape("chunk 1 x 256 of 512", 1, 512, new=256),
        Shape("chunk 4 x 64 of 1024", 4, 1024, new=64),
    ),
    "cuda": (
        Shape("decode 64 x 8192", 64, 8192),
        Shape("decode 64 x 8192, page 1", 64, 8192, block_size=1),
        Shape("decode 64 x 8192, page 128", 64, 8192, block_size=128),
        Shape("decode 8 x 32768", 8, 32768),
        Shape("chunk 4 x 512 of 8192", 4, 8192, new=512),
    ),
}


class Data:
    """N(0, 1) queries and pages in shuffled order, and the same KV side by side."""

    def __init__(self, shape: Shape, device: torch.device, dtype: torch.dtype) -> None:
        self.shape = shape
        width = -(-shape.kv_len // shape.block_size)
        pages = torch.randperm(shape.rows * width, device=device).view(shape.rows, width) + 1
        size = (shape.rows * width + 1, shape.block_size, shape.kv_heads, shape.head_size)
        self.keys = torch.randn(size, device=device, dtype=dtype)
        self.values = torch.randn(size, device=device, dtype=dtype)
        self.queries = torch.randn(shape.rows * shape.new, shape.heads, shape.head_size, device=device, dtype=dtype)
        firsts = tuple(range(0, shape.rows * shape.new, shape.new))
        lens = torch.full((shape.rows,), shape.kv_len, dtype=torch.int64, device=device)
        self.tables = Tables(pages, lens, (shape.kv_len,) * shape.rows, (shape.new,) * shape.rows, firsts)

    def paged(self, attend: Attention) -> Tensor:
        return attend(self.queries, self.keys, self.values, self.tables, self.shape.head_size**-0.5)

    def gathered(self) -> tuple[Tensor, Tensor]:
        """(rows, kv_heads, kv_len, head_size) of both, the plain gather."""
        index, rows = self.tables.tables.flatten(), self.shape.rows
        keys, values = (
            cache.index_select(0, index).view(rows, -1, *cache.shape[2:])[:, : self.shape.kv_len].transpose(1, 2)
            for cache in (self.keys, self.values)
        )
        return keys, values

    def dense(self, keys: Tensor, values: Tensor) -> Tensor:
        """torch's dense attention, in the faster of its two forms for single tokens."""
        shape = self.shape
        if shape.new == 1:
            grouped = self.queries.view(shape.rows, shape.kv_heads, -1, shape.head_size)
            return scaled_dot_product_attention(grouped, keys, values)
        q = self.queries.view(shape.rows, shape.new, shape.heads, -1).transpose(1, 2)
        at = torch.arange(shape.kv_len - shape.new, shape.kv_len, device=q.device)
        mask = torch.arange(shape.kv_len, device=q.device)[None, :] <= at[:, None]
        return scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """The least of some rounds, after two that do not count: the machine may have other work."""
    times: list[float] = []
    for number in range(ROUNDS + 2):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if number >= 2:
            times.append(time.perf_counter() - start)
    return min(times)


def copy_bandwidth(device: torch.device) -> float:
    """Bytes a second that a copy reads and writes."""
    source = torch.empty(2**30 if device.type == "cuda" else 2**28, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    moved: int = 2 * source.numel()
    return moved / seconds(lambda: target.copy_(source), device)


def main(
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    dtype: Annotated[str | None, typer.Option(help="default: float32 on the CPU, bfloat16 on CUDA")] = None,
    attention: Annotated[str | None, typer.Option(help="default: paged on the CPU, triton on CUDA")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="of the CPU; one is steadier on a busy machine")] = None,
) -> None:
    """Prints one line for each shape."""
    cuda = device.startswith("cuda")
    try:
        placement = place(device, dtype or ("bfloat16" if cuda else "float32"))
        attend = load(attention or ("triton" if cuda else "paged"))
    except BadModel as error:
        typer.echo(f"schedspec: {error}", err=True)
        raise typer.Exit(BAD_INPUT) from None
    torch.set_num_threads(threads or torch.get_num_threads())
    torch.manual_seed(0)
    copy = copy_bandwidth(placement.device)
    columns = ("shape", "ms", "dense ms", "paged / dense", "of copy", "gather, of copy")
    table = Table(*columns, box=box.SIMPLE, title=f"{placement.device} {placement.dtype}, copy {copy / 1e9:.0f} GB/s")
    for column in table.columns:
        column.no_wrap = True
    with torch.inference_mode():
        for shape in SHAPES[placement.device.type]:
            table.add_row(*_row(Data(shape, placement.device, placement.dtype), attend, copy))
    Console().print(table)


def _row(data: Data, attend: Attention, copy: float) -> tuple[str, ...]:
    device, moved = data.queries.device, data.shape.bytes_moved(data.queries.element_size())
    keys, values = (part.contiguous() for part in data.gathered())
    dense = seconds(lambda: data.dense(keys, values), device)
    paged = seconds(lambda: data.paged(attend), device)
    gather = seconds(lambda: data.dense(*data.gathered()), device)
    shares = (f"{moved / taken / copy:.2f}" for taken in (paged, gather))
    return (data.shape.name, f"{paged * 1e3:.2f}", f"{dense * 1e3:.2f}", f"{paged / dense:.2f}", *shares)


if __name__ == "__main__":
    typer.run(main)
