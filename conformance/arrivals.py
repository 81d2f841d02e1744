"""Public request traces: when requests arrive, how long they are, which prefixes they share.

azure     CSV with the header `TIMESTAMP,ContextTokens,GeneratedTokens`; every prompt is its own
mooncake  JSON Lines of `{"timestamp": ms, "input_length", "output_length", "hash_ids"}`: one id for each 512
          tokens of the prompt, and equal leading ids for equal prefixes

Every row is checked; the first bad one is refused with file, line and field.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, NamedTuple, TextIO

import msgspec

from conformance.bad_input import field_first
from spec.formulas import ceil_div

HASHED_TOKENS = 512
"""Tokens of the prompt behind each hash id of a Mooncake trace; the last id may stand for fewer."""

FORMATS = ("azure", "mooncake")


class BadWorkload(ValueError):
    """A file that cannot be used as a workload; the text names file, line and field."""


class Arrival(NamedTuple):
    """One row of a trace; `hash_ids` is None where the format tells nothing about prefixes."""

    line: int
    at_ms: float
    prompt_tokens: int
    output_tokens: int
    hash_ids: tuple[int, ...] | None


class _BadRow(Exception):
    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")


Tokens = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]


class _AzureRow(msgspec.Struct, frozen=True):
    TIMESTAMP: str
    ContextTokens: Tokens
    GeneratedTokens: Tokens


class _MooncakeRow(msgspec.Struct, frozen=True):
    timestamp: Annotated[float, msgspec.Meta(ge=0)]
    input_length: Tokens
    output_length: Tokens
    hash_ids: tuple[NotNegative, ...]


def read(path: Path, format: str = "auto", limit: int | None = None) -> list[Arrival]:
    """The first `limit` rows of a trace, all by default, in order of arrival.

    `format` is one of FORMATS, or `auto` to tell them apart by the first character.  Raises BadWorkload.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = _azure(file) if _format_of(file, format) == "azure" else _mooncake(file)
            arrivals = list(_in_order(islice(rows, limit)))
    except OSError as error:
        raise BadWorkload(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadWorkload(f"{path}: byte {error.start} is not UTF-8 text") from error
    except _BadRow as error:
        raise BadWorkload(f"{path}: {error}") from error
    if not arrivals:
        raise BadWorkload(f"{path}: holds no request")
    return arrivals


def _format_of(file: TextIO, format: str) -> str:
    if format in FORMATS:
        return format
    if format != "auto":
        raise BadWorkload(f"format {format!r} is unknown, known: auto, {', '.join(FORMATS)}")
    first = file.read(1)
    file.seek(0)
    return "mooncake" if first == "{" else "azure"


def _azure(file: TextIO) -> Iterator[Arrival]:
    reader = csv.reader(file, strict=True)
    names = _AzureRow.__struct_fields__
    try:
        header = next(reader, [])
        if tuple(header) != names:
            raise _BadRow(1, f"header: {','.join(header)!r}, expected {','.join(names)!r}")
        for columns in reader:
            if len(columns) != len(names):
                raise _BadRow(reader.line_num, f"row: {len(columns)} columns, expected {len(names)}")
            try:
                row = msgspec.convert(dict(zip(names, columns, strict=True)), _AzureRow, strict=False)
            except msgspec.ValidationError as error:
                raise _BadRow(reader.line_num, field_first(error)) from error
            at_ms = _milliseconds(row.TIMESTAMP, reader.line_num)
            yield Arrival(reader.line_num, at_ms, row.ContextTokens, row.GeneratedTokens, None)
    except csv.Error as error:
        raise _BadRow(reader.line_num, f"row: {error}") from error


def _milliseconds(timestamp: str, line: int) -> float:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError as error:
        raise _BadRow(line, f"TIMESTAMP: {timestamp!r} is no time, expected one like 2023-11-16 18:17:03.98") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000


def _mooncake(file: TextIO) -> Iterator[Arrival]:
    decoder = msgspec.json.Decoder(_MooncakeRow)
    for number, line in enumerate(file, 1):
        try:
            row = decoder.decode(line)
        except msgspec.DecodeError as error:
            raise _BadRow(number, field_first(error)) from error
        due = ceil_div(row.input_length, HASHED_TOKENS)
        if len(row.hash_ids) != due:
            told = f"{len(row.hash_ids)} ids, expected {due} for {row.input_length} tokens"
            raise _BadRow(number, f"hash_ids: {told}, one for each {HASHED_TOKENS}")
        yield Arrival(number, row.timestamp, row.input_length, row.output_length, row.hash_ids)


def _in_order(rows: Iterable[Arrival]) -> Iterator[Arrival]:
    """The rows with time counted from the first one."""
    start = last = None
    for row in rows:
        start = row.at_ms if start is None else start
        if last is not None and row.at_ms < last:
            raise _BadRow(row.line, "timestamp: is earlier than the one before it")
        last = row.at_ms
        yield row._replace(at_ms=row.at_ms - start)


def prompt(arrival: Arrival, scale: int, tokens: int, own: Sequence[int]) -> tuple[int, ...]:
    """The first `tokens` of the prompt, of which every `scale`-th token is kept; equal ids give equal tokens.

    `own` are token ids that no other request uses, for a prompt that shares nothing.
    """
    if arrival.hash_ids is None:
        return tuple(own[:tokens])
    kept: list[int] = []
    for index, hash_id in enumerate(arrival.hash_ids):
        first = -index * HASHED_TOKENS % scale
        kept.extend(range(hash_id * HASHED_TOKENS + first, (hash_id + 1) * HASHED_TOKENS, scale))
        if len(kept) >= tokens:
            break
    return tuple(kept[:tokens])
