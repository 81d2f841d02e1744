"""Workloads: files read strictly, lengths that fit, prefixes that stay shared, verdicts with the rows they name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.adapters import reference
from conformance.arrivals import HASHED_TOKENS, Arrival, BadWorkload, prompt, read
from conformance.deviations import Deviation, KnownDeviations
from conformance.lockstep import Judge, Level
from conformance.protocol import Implementation
from conformance.workload import DEFAULT_CONFIG, FailedWorkload, Summary, Workload, drive, fit
from spec.formulas import ceil_div, longest_footprint
from spec.validity import InvalidInput, check_request
from spec.vocabulary import PROFILES, Config, StepPlan

PROFILE = PROFILES["vllm-0.8.5"]
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
FIRST = "2023-11-16 18:17:03.9799600,4808,10\n"
TURN = '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 7]}\n'
SMALL = Config(33, 4, 32, 8, 64, long_prefill_token_threshold=8)
"""Small enough that a few rows fill it, and looked at in full after every step."""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rows"
    path.write_text(text)
    return path


def conversations(count: int, gap_ms: int = 10) -> list[Arrival]:
    """Rows that share the first block of their prompts by threes."""
    return [
        Arrival(
            n + 1, n * gap_ms, 1000 + 97 * n % 700, 200 + 31 * n % 300, (n // 3, *range(1000 + 4 * n, 1003 + 4 * n))
        )
        for n in range(count)
    ]


def judged(arrivals: list[Arrival], level: Level = Level.IDENTICAL, config: Config = SMALL) -> Summary:
    return drive(reference.IMPLEMENTATION, Judge(PROFILE, level), fit(arrivals, config, scale=32))


# --- reading -------------------------------------------------------------------------------------


def test_azure_rows(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + FIRST + "2023-11-16 18:17:05,34,23")
    first, second = read(path)
    assert first == Arrival(2, 0, 4808, 10, None)
    assert second._replace(at_ms=0) == Arrival(3, 0, 34, 23, None)
    assert second.at_ms == pytest.approx(1020.04)
    assert read(path, limit=1) == [first]


def test_azure_rows_with_a_time_zone(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + "2024-05-10 00:00:00.5+00:00,1,1\n2024-05-10 00:00:01,1,1\n")
    assert [arrival.at_ms for arrival in read(path, "azure")] == [0, 500]


def test_mooncake_rows(tmp_path: Path) -> None:
    later = TURN.replace('"timestamp": 0', '"timestamp": 27482')
    assert read(written(tmp_path, TURN + later)) == [
        Arrival(1, 0, 600, 5, (0, 7)),
        Arrival(2, 27482, 600, 5, (0, 7)),
    ]


BAD_AZURE = {
    "empty": ("", "line 1: header: ''"),
    "no header": (FIRST, "line 1: header: '2023-11-16"),
    "no row": (HEADER, "holds no request"),
    "two columns": (HEADER + FIRST + "2023-11-16 18:17:04,5\n", "line 3: row: 2 columns, expected 3"),
    "four columns": (HEADER + FIRST.strip() + ",1\n", "line 2: row: 4 columns, expected 3"),
    "blank line": (HEADER + FIRST + "\n" + FIRST, "line 3: row: 0 columns, expected 3"),
    "zero tokens": (HEADER + FIRST.replace("4808", "0"), "line 2: ContextTokens: Expected int >= 1"),
    "zero output": (HEADER + FIRST.replace(",10", ",0"), "line 2: GeneratedTokens: Expected int >= 1"),
    "negative": (HEADER + FIRST.replace("4808", "-3"), "line 2: ContextTokens: Expected int >= 1"),
    "a fraction": (HEADER + FIRST.replace("4808", "48.5"), "line 2: ContextTokens: Expected int"),
    "no number": (HEADER + FIRST.replace("4808", "many"), "line 2: ContextTokens: Expected int"),
    "no time": (HEADER + FIRST.replace("2023-11-16", "2023-31-16"), "line 2: TIMESTAMP: '2023-31-16"),
    "unsorted": (HEADER + FIRST + FIRST.replace("18:17", "18:16"), "line 3: timestamp: is earlier"),
    "open quote": (HEADER + '"2023', "line 2: row: unexpected end of data"),
}

BAD_MOONCAKE = {
    "cut off": (TURN + '{"timestamp": 3', "line 2: Input data was truncated"),
    "blank line": (TURN + "\n" + TURN, "line 2: "),
    "no ids": (TURN.replace(', "hash_ids": [0, 7]', ""), "line 1: hash_ids: is missing"),
    "too few ids": (TURN.replace("[0, 7]", "[0]"), "line 1: hash_ids: 1 ids, expected 2 for 600 tokens"),
    "too many ids": (TURN.replace("[0, 7]", "[0, 7, 8]"), "line 1: hash_ids: 3 ids, expected 2 for 600 tokens"),
    "negative id": (TURN.replace("7", "-7"), "line 1: hash_ids[1]: Expected int >= 0"),
    "an id of text": (TURN.replace("7", '"7"'), "line 1: hash_ids[1]: Expected int, got str"),
    "zero tokens": (TURN.replace("600", "0"), "line 1: input_length: Expected int >= 1"),
    "true": (TURN.replace("600", "true"), "line 1: input_length: Expected int, got bool"),
    "zero output": (TURN.replace("5", "0"), "line 1: output_length: Expected int >= 1"),
    "before zero": (TURN.replace('"timestamp": 0', '"timestamp": -1'), "line 1: timestamp: Expected float >= 0"),
    "unsorted": (TURN.replace('"timestamp": 0', '"timestamp": 9') + TURN, "line 2: timestamp: is earlier"),
}


@pytest.mark.parametrize(
    ("text", "problem"), [*BAD_AZURE.values(), *BAD_MOONCAKE.values()], ids=[*BAD_AZURE, *BAD_MOONCAKE]
)
def test_bad_rows_are_refused_by_file_line_and_field(text: str, problem: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadWorkload) as refused:
        read(path)
    assert str(refused.value).startswith(f"{path}: {problem}")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(b"TIMESTAMP\xff")
    with pytest.raises(BadWorkload, match="byte 9 is not UTF-8 text"):
        read(path)
    with pytest.raises(BadWorkload, match="No such file"):
        read(tmp_path / "nothing")
    with pytest.raises(BadWorkload, match="'xml' is unknown, known: auto, azure, mooncake"):
        read(written(tmp_path, TURN), "xml")


# --- requests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 3, 8, 512, 700])
def test_equal_ids_are_equal_tokens(scale: int) -> None:
    shared = 2 * HASHED_TOKENS
    a = prompt(Arrival(1, 0, 1500, 1, (5, 6, 7)), scale, ceil_div(1500, scale), ())
    b = prompt(Arrival(2, 0, 2000, 1, (5, 6, 8, 9)), scale, ceil_div(2000, scale), ())
    assert len(a) == ceil_div(1500, scale)
    assert len(b) == ceil_div(2000, scale)
    common = ceil_div(shared, scale)
    assert a[:common] == b[:common]
    assert not set(a[common:]) & set(b)


def test_prompts_without_ids_share_nothing() -> None:
    rows = [Arrival(line, 0, 4000, 40, None) for line in (2, 3)]
    workload = fit(rows)
    a, b = (workload.request(row) for row in rows)
    assert not set(a.request.prompt_token_ids) & set(b.request.prompt_token_ids)
    assert not set(a.request.prompt_token_ids) & set(a.script.output)
    assert isinstance(a.script.output, range), "what is said must not be held for every request"


@given(
    tokens=st.integers(1, 1 << 20),
    output=st.integers(1, 1 << 20),
    scale=st.integers(1, 64),
    blocks=st.integers(3, 40),
    model_len=st.integers(2, 400),
)
def test_every_request_fits_alone(tokens: int, output: int, scale: int, blocks: int, model_len: int) -> None:
    config = replace(DEFAULT_CONFIG, num_blocks=blocks, max_model_len=model_len)
    row = Arrival(1, 0, tokens, output, None)
    workload = Workload([row], config, scale, 1.0)
    request = check_request(workload.request(row).request, config)
    assert longest_footprint(request, config) <= blocks - 1
    assert len(request.prompt_token_ids) + request.max_tokens <= model_len
    whole = (ceil_div(tokens, scale), ceil_div(output, scale))
    assert workload.clips(row) == ((len(request.prompt_token_ids), request.max_tokens) != whole)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"scale": 0}, "scale"),
        ({"speed": 0.0}, "speed"),
        ({"speed": float("inf")}, "speed"),
        ({"speed": float("nan")}, "speed"),
        ({"config": replace(SMALL, num_blocks=1)}, "num_blocks"),
        ({"config": replace(SMALL, block_size=0)}, "block_size"),
        ({"config": replace(SMALL, max_model_len=1)}, "max_model_len"),
    ],
)
def test_impossible_fits_are_refused(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        fit(conversations(1), **changes)  # type: ignore[arg-type]
    assert refused.value.field == field


# --- driving -------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", Level)
def test_the_reference_passes_under_pressure(level: Level) -> None:
    summary = judged(conversations(60), level)
    assert summary.requests == 60
    assert summary.preemptions > 10
    assert summary.hits > 10
    assert summary.most_running > 1
    assert set(summary.seconds) == {"implementation", "inspection", "judging"} | (
        {"spec"} if level is not Level.LAWFUL else set()
    )


def test_a_large_pool_is_looked_at_piece_by_piece() -> None:
    assert judged(conversations(200), config=replace(SMALL, num_blocks=300, max_num_seqs=32)).requests == 200


def test_every_token_is_scheduled_once_where_nothing_is_preempted() -> None:
    rows = [Arrival(line, line * 1000, 320, 64, None) for line in range(1, 6)]
    workload = fit(rows, SMALL, scale=32, speed=1)
    summary = drive(reference.IMPLEMENTATION, Judge(PROFILE), workload)
    assert (summary.preemptions, summary.hits, summary.clipped) == (0, 0, 0)
    assert summary.tokens == 5 * (10 + 2 - 1), "the last token of each is sampled and never computed"


def test_idle_time_is_skipped() -> None:
    rows = [Arrival(1, 0, 100, 40, None), Arrival(2, 3_600_000, 100, 40, None)]
    summary = drive(reference.IMPLEMENTATION, Judge(PROFILE), fit(rows, SMALL, scale=32, speed=1))
    assert summary.steps < 10


def test_two_runs_are_the_same() -> None:
    first, second = judged(conversations(40)), judged(conversations(40))
    assert replace(first, seconds=second.seconds) == second


class GivesUp(reference.InspectedReference):
    """Raises in its 20th step."""

    taken = 0

    def schedule(self) -> StepPlan:
        self.taken += 1
        if self.taken == 20:
            raise RuntimeError("out of ideas")
        return super().schedule()


class HandsOutAnotherBlock(reference.InspectedReference):
    """Its free queue begins with block 2: nothing unlawful, but other block ids than the spec's."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        queue = self.kv_cache.pool.free_queue
        queue.append(queue.pop_front())


class ForgetsToRelease(reference.InspectedReference):
    """Counts one reference too many for a block that it has just handed out, from its 20th step on."""

    taken = 0

    def schedule(self) -> StepPlan:
        plan = super().schedule()
        self.taken += 1
        if self.taken >= 20 and plan.grants and plan.grants[-1].blocks:
            self.kv_cache.pool.references[plan.grants[-1].blocks[-1]] += 1
        return plan


def broken(kind: type[reference.InspectedReference]) -> Implementation:
    return Implementation(kind.__name__, kind, reference.IMPLEMENTATION.capabilities)


def test_a_failure_tells_step_and_rows() -> None:
    with pytest.raises(FailedWorkload) as failed:
        drive(broken(GivesUp), Judge(PROFILE), fit(conversations(60), SMALL, scale=32))
    assert failed.value.failure.violation.law == "ANSWER"
    assert failed.value.summary.steps == 19
    assert failed.value.rows
    assert all(f"line-{row.line}" in failed.value.failure.sides for row in failed.value.rows)


def test_a_wrong_reference_count_shows_at_once_in_a_large_pool() -> None:
    config = replace(SMALL, num_blocks=300, max_num_seqs=32)
    with pytest.raises(FailedWorkload) as failed:
        drive(broken(ForgetsToRelease), Judge(PROFILE), fit(conversations(200), config, scale=32))
    assert failed.value.failure.violation[:2] == ("COUNT", "references")
    assert failed.value.summary.steps < 25


def test_other_block_ids_are_equivalent_but_not_identical() -> None:
    workload = fit(conversations(10), SMALL, scale=32)
    assert drive(broken(HandsOutAnotherBlock), Judge(PROFILE, Level.EQUIVALENT), workload).requests == 10
    with pytest.raises(FailedWorkload) as failed:
        drive(broken(HandsOutAnotherBlock), Judge(PROFILE), workload)
    assert failed.value.summary.steps == 0


def test_behind_a_known_end_the_rest_goes_on() -> None:
    known = KnownDeviations(
        "gives-up", (Deviation("gives-up", "ANSWER", "RuntimeError in schedule", "Raises in step 20.", "none"),)
    )
    summary = drive(broken(GivesUp), Judge(PROFILE, known=known), fit(conversations(60), SMALL, scale=32))
    assert summary.requests == 60
    assert summary.given_up > 0
    assert summary.sessions == summary.shown["gives-up"] > 1
