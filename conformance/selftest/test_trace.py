"""Traces: what is written is read back, and what is wrong is refused by file, line and field."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.adapters import reference
from conformance.generate import Author, Seeded, draw_config, draw_event
from conformance.lockstep import Judge, Session
from conformance.protocol import CAPABILITIES
from conformance.replay import replay
from conformance.trace import SCHEMA_VERSION, BadTrace, Header, read, step_record, write
from spec.events import Event, StepEvent
from spec.vocabulary import PROFILES, StepPlan

PROFILE = PROFILES["vllm-0.8.5"]
CONFIG = {
    "num_blocks": 9,
    "block_size": 4,
    "max_num_batched_tokens": 16,
    "max_num_seqs": 4,
    "max_model_len": 16,
}
HEADER = {"event": "header", "schema": SCHEMA_VERSION, "id": "made-up", "profile": PROFILE.name, "config": CONFIG}
REQUEST = {"request_id": "a", "prompt_token_ids": [1, 2, 3], "max_tokens": 2}
ADD = {"event": "add", "request": REQUEST, "script": {"output": [4, 5], "drafts": []}}
STEP = {"event": "step"}


def written(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "made-up.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(BadTrace) as refused:
        read(path)
    name, _, problem = str(refused.value).partition(": ")
    assert name == str(path)
    return problem


def random_run(seed: int) -> tuple[Header, list[Event], list[StepPlan | None]]:
    """A run with every feature that the reference has, and what the spec planned."""
    draw = Seeded(f"test_trace {seed}")
    config = draw_config(draw, frozenset(CAPABILITIES))
    author = Author(config, frozenset(CAPABILITIES))
    session = Session(reference.IMPLEMENTATION, config, Judge(PROFILE))
    plans: list[StepPlan | None] = []
    for _ in range(40):
        session.apply(draw_event(draw, author, session.observer))
        if isinstance(session.events[-1], StepEvent):
            plans.append(session.last_spec_plan)
    return Header(SCHEMA_VERSION, f"random-{seed}", PROFILE.name, config), session.events, plans


# --- round trip ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_what_is_written_is_read_back(seed: int, tmp_path: Path) -> None:
    header, events, plans = random_run(seed)
    path = tmp_path / "deep" / "run.jsonl"
    write(path, header, events, plans)
    found = read(path)
    assert found.header == header
    assert list(found.events) == events
    assert [record for record in found.expected if record] == [step_record(plan) for plan in plans if plan]
    again = tmp_path / "again.jsonl"
    write(again, found.header, found.events, plans)
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("seed", range(5))
def test_what_is_read_replays(seed: int, tmp_path: Path) -> None:
    header, events, plans = random_run(seed)
    write(tmp_path / "run.jsonl", header, events, plans)
    session = replay(reference.IMPLEMENTATION, Judge(PROFILE), read(tmp_path / "run.jsonl"))
    assert session.steps == len(plans)


def test_a_trace_needs_no_expectations(tmp_path: Path) -> None:
    found = read(written(tmp_path, HEADER, ADD, STEP, STEP))
    assert found.expected == (None, None, None)
    assert replay(reference.IMPLEMENTATION, Judge(PROFILE), found).steps == 2


# --- the header ----------------------------------------------------------------------------------

BAD_HEADERS: dict[str, tuple[dict[str, object], str]] = {
    "schema of tomorrow": ({"schema": 99}, f"schema: version 99 is unknown, this is {SCHEMA_VERSION}"),
    "schema of text": ({"schema": "1"}, "schema: Expected int, got str"),
    "unknown profile": ({"profile": "vllm-0.0.1"}, "profile: 'vllm-0.0.1' is unknown, known: vllm-0.8.5"),
    "unknown class": ({"level": "perfect"}, "level: Invalid enum value 'perfect'"),
    "unknown field": ({"colour": 1}, "colour: is unknown"),
    "no configuration": ({"config": None}, "config: Expected object, got null"),
}


@pytest.mark.parametrize(("changes", "problem"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_a_bad_header_is_refused(changes: dict[str, object], problem: str, tmp_path: Path) -> None:
    assert refusal(written(tmp_path, {**HEADER, **changes})) == f"line 1: {problem}"


@pytest.mark.parametrize("name", ["schema", "id", "profile", "config"])
def test_a_header_without_a_field_is_refused(name: str, tmp_path: Path) -> None:
    header = {key: value for key, value in HEADER.items() if key != name}
    assert refusal(written(tmp_path, header)) == f"line 1: {name}: is missing"


IMPOSSIBLE_CONFIGS: dict[str, tuple[dict[str, object], str]] = {
    "no budget": ({"max_num_batched_tokens": 0}, "config.max_num_batched_tokens: must be at least 1, not 0"),
    "budget below seats": (
        {"max_num_batched_tokens": 3},
        "config.max_num_batched_tokens: must be at least max_num_seqs",
    ),
    "no block size": ({"block_size": 0}, "config.block_size: must be at least 1 token, not 0"),
    "negative block size": ({"block_size": -4}, "config.block_size: must be at least 1 token, not -4"),
    "only the reserved block": (
        {"num_blocks": 1},
        "config.num_blocks: must be at least 2, because block 0 is reserved",
    ),
    "no seats": ({"max_num_seqs": 0}, "config.max_num_seqs: must be at least 1, not 0"),
    "no model length": ({"max_model_len": 0}, "config.max_model_len: must be at least 1 token, not 0"),
    "eagle without drafts": ({"use_eagle": True}, "config.use_eagle: needs num_speculative_tokens"),
    "true for a number": ({"num_blocks": True}, "config.num_blocks: Expected int, got bool"),
    "a number for true": ({"use_connector": 1}, "config.use_connector: Expected bool, got int"),
    "a fraction": ({"block_size": 1.5}, "config.block_size: Expected int, got float"),
    "misspelt": ({"use_eagel": True}, "config.use_eagel: is unknown"),
    "text": ({"block_size": "4"}, "config.block_size: Expected int, got str"),
}


@pytest.mark.parametrize(("changes", "problem"), IMPOSSIBLE_CONFIGS.values(), ids=IMPOSSIBLE_CONFIGS)
def test_an_impossible_configuration_is_refused(changes: dict[str, object], problem: str, tmp_path: Path) -> None:
    header = {**HEADER, "config": {**CONFIG, **changes}}
    assert refusal(written(tmp_path, header)).startswith(f"line 1: {problem}")


# --- events --------------------------------------------------------------------------------------

BAD_REQUESTS: dict[str, tuple[dict[str, object], str]] = {
    "empty id": ({"request_id": ""}, "request_id: must not be empty"),
    "empty prompt": ({"prompt_token_ids": []}, "prompt_token_ids: must not be empty"),
    "prompt over model length": ({"prompt_token_ids": [1] * 17}, "prompt_token_ids: is longer than max_model_len"),
    "negative token": ({"prompt_token_ids": [1, -2]}, "prompt_token_ids: must hold no negative token id"),
    "true for a token": ({"prompt_token_ids": [1, True]}, "request.prompt_token_ids[1]: Expected int, got bool"),
    "no tokens wanted": ({"max_tokens": 0}, "max_tokens: must be at least 1"),
    "true for a cap": ({"max_tokens": True}, "request.max_tokens: Expected int, got bool"),
    "priority of a half": ({"priority": 1.5}, "request.priority: Expected int, got float"),
    "priority of text": ({"priority": "high"}, "request.priority: Expected int, got str"),
    "adapter without adapters": ({"lora_id": 1}, "lora_id: needs max_loras of at least 1"),
    "external without connector": ({"external_tokens": 1}, "external_tokens: needs use_connector"),
    "all external": ({"external_tokens": 3}, "external_tokens: must leave at least one token"),
    "item without encoder": ({"items": [{"offset": 0, "length": 1, "content": 1}]}, "items: must each fit the encoder"),
    "item outside": ({"items": [{"offset": 9, "length": 1, "content": 1}]}, "items: must lie inside the prompt"),
    "unknown field": ({"temperature": 1}, "request: Object contains unknown field temperature"),
}


@pytest.mark.parametrize(("changes", "problem"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_a_bad_request_is_refused(changes: dict[str, object], problem: str, tmp_path: Path) -> None:
    bad = {**ADD, "request": {**REQUEST, **changes}}
    assert refusal(written(tmp_path, HEADER, ADD, STEP, bad)).startswith(f"line 4: {problem}")


BAD_LINES: dict[str, tuple[object, str]] = {
    "not JSON": ("add a\n", "JSON is malformed"),
    "cut off": (json.dumps(ADD)[:-9] + "\n", "Input data was truncated"),
    "blank": ("\n", "Input data was truncated"),
    "not an object": ([1], "Expected object, got array"),
    "no kind": ({"request_id": "a"}, "event: is missing"),
    "unknown kind": ({"event": "dance"}, "event: Invalid value 'dance'"),
    "second header": (HEADER, "event: Invalid value 'header'"),
    "abort of nothing": ({"event": "abort"}, "request_id: is missing"),
    "grammar of a stranger": ({"event": "grammar_ready", "request_id": "b"}, "request_id: 'b' was never added"),
    "step that grants words": ({"event": "step", "grants": ["a"]}, "grants[0]: Expected object, got str"),
    "drafts of three numbers": (
        {**ADD, "script": {"drafts": [[1, 1, 1]]}},
        "script.drafts[0]: Expected array of length 2",
    ),
}


@pytest.mark.parametrize(("line", "problem"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_refused(line: object, problem: str, tmp_path: Path) -> None:
    assert refusal(written(tmp_path, HEADER, ADD, line, STEP)).startswith(f"line 3: {problem}")


BAD_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda path: None, "No such file or directory"),
    "a directory": (lambda path: path.mkdir(), "Is a directory"),
    "empty": (lambda path: path.write_bytes(b""), "line 1: empty file, a header is expected"),
    "no text": (lambda path: path.write_bytes(b"\x80\x81\n"), "line 1: "),
    "no header": (lambda path: path.write_text(json.dumps(STEP)), "line 1: event: Invalid value 'step'"),
}


@pytest.mark.parametrize(("make", "problem"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused(make: Callable[[Path], Any], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    make(path)
    assert refusal(path).startswith(problem)
