"""Traces: a run as one JSON Lines file, self-contained, replayable without Hypothesis.

The first line is the header: schema version, stable id, profile, class, configuration.  Each further line is an
event; a `step` may say what the spec expects.  A request brings along what it will say, so that a trace can
drive any scheduler.  The schema is published as `conformance/schema/trace.schema.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from conformance.bad_input import field_first
from conformance.lockstep import Level
from spec.events import Abort, Add, Event, GrammarReady, Reset, StepEvent
from spec.model import Script
from spec.validity import InvalidInput, check_config, check_request
from spec.vocabulary import PROFILES, Config, EncoderItem, Grant, Request, StepPlan

SCHEMA_VERSION = 1


class BadTrace(ValueError):
    """A trace that cannot be used; the text names file, line and field."""


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The common shape of everything in a trace."""


class ItemRecord(_Record, frozen=True):
    offset: int
    length: int
    content: int


class RequestRecord(_Record, frozen=True):
    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    eos_token_id: int | None = None
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    lora_id: int = 0
    items: tuple[ItemRecord, ...] = ()
    needs_grammar: bool = False
    prompt_logprobs: bool = False
    external_tokens: int = 0
    priority: int = 0


class ScriptRecord(_Record, frozen=True):
    output: tuple[int, ...] = ()
    drafts: tuple[tuple[int, int], ...] = ()


class GrantRecord(_Record, frozen=True):
    request_id: str
    admission: str
    start: int
    tokens: int
    blocks: tuple[int, ...] = ()
    drafts: tuple[int, ...] = ()
    items: tuple[int, ...] = ()
    external: int = 0


class Header(_Record, frozen=True, tag_field="event", tag="header"):
    schema: int
    id: str
    profile: str
    config: Config
    level: Level = Level.IDENTICAL
    note: str = ""


class AddRecord(_Record, frozen=True, tag_field="event", tag="add"):
    request: RequestRecord
    script: ScriptRecord = ScriptRecord()


class AbortRecord(_Record, frozen=True, tag_field="event", tag="abort"):
    request_id: str


class GrammarRecord(_Record, frozen=True, tag_field="event", tag="grammar_ready"):
    request_id: str


class ResetRecord(_Record, frozen=True, tag_field="event", tag="reset"):
    pass


class StepRecord(_Record, frozen=True, tag_field="event", tag="step"):
    grants: tuple[GrantRecord, ...] | None = None
    preempted: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()


EventRecord = AddRecord | AbortRecord | GrammarRecord | ResetRecord | StepRecord


class Trace(msgspec.Struct, frozen=True):
    """A header, its events, and for each event the plan that is expected, where the trace says so."""

    header: Header
    events: tuple[Event, ...]
    expected: tuple[StepRecord | None, ...]


# --- reading -------------------------------------------------------------------------------------

_HEADER = msgspec.json.Decoder(Header)
_HEADER_START = b'{"event":"header"'
_EVENT: msgspec.json.Decoder[EventRecord] = msgspec.json.Decoder(EventRecord)


def read(path: Path) -> Trace:
    """The trace in a file.  Raises BadTrace naming file, line and field."""
    return _trace(path, 1, _lines(path))


def read_all(path: Path) -> list[Trace]:
    """The traces in a file that holds several, each from its header on.  Raises BadTrace as `read` does."""
    lines = _lines(path)
    starts = [0, *(number for number, line in enumerate(lines) if number and line.startswith(_HEADER_START))]
    ends = (*starts[1:], len(lines))
    return [_trace(path, start + 1, lines[start:end]) for start, end in zip(starts, ends, strict=True)]


def _lines(path: Path) -> list[bytes]:
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadTrace(f"{path}: {error.strerror}") from error
    if not lines:
        raise BadTrace(f"{path}: line 1: empty file, a header is expected")
    return lines


def _trace(path: Path, first: int, lines: list[bytes]) -> Trace:
    """The trace in some lines, the first of which has this number in its file."""
    header = _header(path, first, lines[0])
    events: list[Event] = []
    expected: list[StepRecord | None] = []
    known: set[str] = set()
    for number, line in enumerate(lines[1:], first + 1):
        record = _decode(_EVENT, path, number, line)
        try:
            events.append(_event(record, header.config, known))
        except InvalidInput as error:
            raise BadTrace(f"{path}: line {number}: {error}") from error
        expected.append(record if isinstance(record, StepRecord) and record.grants is not None else None)
    return Trace(header, tuple(events), tuple(expected))


def _header(path: Path, number: int, line: bytes) -> Header:
    header: Header = _decode(_HEADER, path, number, line)
    if header.schema != SCHEMA_VERSION:
        raise BadTrace(f"{path}: line {number}: schema: version {header.schema} is unknown, this is {SCHEMA_VERSION}")
    if header.profile not in PROFILES:
        raise BadTrace(f"{path}: line {number}: profile: {header.profile!r} is unknown, known: {', '.join(PROFILES)}")
    try:
        _refuse_unknown_fields(line)
        check_config(header.config)
    except InvalidInput as error:
        raise BadTrace(f"{path}: line {number}: config.{error}") from error
    return header


def _decode(decoder: msgspec.json.Decoder[Any], path: Path, number: int, line: bytes) -> Any:
    try:
        return decoder.decode(line)
    except msgspec.DecodeError as error:
        raise BadTrace(f"{path}: line {number}: {field_first(error)}") from error


def _refuse_unknown_fields(header: bytes) -> None:
    """A misspelt field of the configuration; msgspec ignores those of a dataclass."""
    for field in msgspec.json.decode(header)["config"]:
        if field not in Config.__slots__:
            raise InvalidInput(field, "is unknown")


def _event(record: EventRecord, config: Config, known: set[str]) -> Event:
    match record:
        case AddRecord(request, script):
            known.add(request.request_id)
            return Add(check_request(_request(request), config), Script(script.output, script.drafts))
        case AbortRecord(request_id):
            return Abort(request_id)
        case GrammarRecord(request_id):
            if request_id not in known:
                raise InvalidInput("request_id", f"{request_id!r} was never added")
            return GrammarReady(request_id)
        case ResetRecord():
            return Reset()
        case StepRecord():
            return StepEvent()


def _request(record: RequestRecord) -> Request:
    told = {name: getattr(record, name) for name in record.__struct_fields__}
    told["items"] = tuple(EncoderItem(item.offset, item.length, item.content) for item in record.items)
    return Request(**told)


# --- writing -------------------------------------------------------------------------------------


def write(path: Path, header: Header, events: Sequence[Event], plans: Iterable[StepPlan | None] = ()) -> None:
    """Writes a run as a trace; `plans` are what the spec expects of its steps, in order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(header, events, plans))


def encode(header: Header, events: Sequence[Event], plans: Iterable[StepPlan | None] = ()) -> bytes:
    """The lines of a trace."""
    remaining = iter(plans)
    lines = [msgspec.json.encode(_without_defaults(header))]
    for event in events:
        plan = next(remaining, None) if isinstance(event, StepEvent) else None
        lines.append(msgspec.json.encode(_record(event, plan)))
    return b"\n".join(lines) + b"\n"


def _without_defaults(header: Header) -> dict[str, Any]:
    """A header that tells of its configuration what is not the default."""
    told: dict[str, Any] = msgspec.to_builtins(header)
    defaults = {field.name: field.default for field in fields(Config)}
    told["config"] = {name: value for name, value in told["config"].items() if value != defaults[name]}
    return told


def _record(event: Event, plan: StepPlan | None) -> EventRecord:
    match event:
        case Add(request, script):
            told = {name: getattr(request, name) for name in RequestRecord.__struct_fields__}
            told["items"] = tuple(ItemRecord(*item) for item in request.items)
            return AddRecord(RequestRecord(**told), ScriptRecord(tuple(script.output), script.drafts))
        case Abort(request_id):
            return AbortRecord(request_id)
        case GrammarReady(request_id):
            return GrammarRecord(request_id)
        case Reset():
            return ResetRecord()
        case StepEvent():
            return step_record(plan) if plan is not None else StepRecord()


def step_record(plan: StepPlan) -> StepRecord:
    """The part of a plan that a trace tells."""
    return StepRecord(tuple(_grant(grant) for grant in plan.grants), plan.preempted, plan.finished)


def _grant(grant: Grant) -> GrantRecord:
    return GrantRecord(**{**grant._asdict(), "admission": grant.admission.value})


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a line of a trace."""
    schemas, components = msgspec.json.schema_components((Header, EventRecord), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One line of a SchedSpec trace: a header, then events",
        "anyOf": list(schemas),
        "$defs": components,
    }
