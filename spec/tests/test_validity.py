"""Every row of the tables of valid input refuses something, by name; what lies at a limit passes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spec.tests.build import ENCODER, SMALL, request
from spec.validity import CONFIG_ROWS, REQUEST_ROWS, InvalidInput, check_config, check_request
from spec.vocabulary import EncoderItem

BAD_CONFIGS: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"num_blocks": 1}, "num_blocks", "must be at least 2, because block 0 is reserved"),
    ({"block_size": 0}, "block_size", "must be at least 1 token"),
    ({"max_num_seqs": 0}, "max_num_seqs", "must be at least 1"),
    ({"max_num_batched_tokens": 0}, "max_num_batched_tokens", "must be at least 1"),
    ({"max_num_batched_tokens": 7}, "max_num_batched_tokens", "must be at least max_num_seqs"),
    ({"max_model_len": 0}, "max_model_len", "must be at least 1 token"),
    ({"long_prefill_token_threshold": -1}, "long_prefill_token_threshold", "must not be negative"),
    ({"num_speculative_tokens": -1}, "num_speculative_tokens", "must not be negative"),
    ({"use_eagle": True}, "use_eagle", "needs num_speculative_tokens of at least 1"),
    ({"max_loras": -1}, "max_loras", "must not be negative"),
    ({"max_num_encoder_input_tokens": -1}, "max_num_encoder_input_tokens", "must not be negative"),
    ({"encoder_cache_size": 4}, "encoder_cache_size", "must be set together with max_num_encoder_input_tokens"),
)

GOOD_CONFIGS: tuple[dict[str, Any], ...] = (
    {"num_blocks": 2},
    {"block_size": 1},
    {"max_model_len": 1},
    {"max_num_batched_tokens": 8},
    {"num_speculative_tokens": 1, "use_eagle": True},
    ENCODER,
)

WIDE = replace(SMALL, max_num_batched_tokens=8, max_loras=1, use_connector=True, disable_chunked_mm_input=True)
WIDE = replace(WIDE, max_num_encoder_input_tokens=12, encoder_cache_size=12)
BARE = replace(WIDE, max_loras=0, use_connector=False)

BAD_REQUESTS: tuple[tuple[Any, Any, str, str], ...] = (
    (WIDE, {"request_id": ""}, "request_id", "must not be empty"),
    (WIDE, {"prompt_token_ids": ()}, "prompt_token_ids", "must not be empty"),
    (WIDE, {"prompt_token_ids": (1,) * 33}, "prompt_token_ids", "is longer than max_model_len"),
    (WIDE, {"prompt_token_ids": (1, -1)}, "prompt_token_ids", "must hold no negative token id"),
    (WIDE, {"max_tokens": 0}, "max_tokens", "must be at least 1"),
    (WIDE, {"lora_id": -1}, "lora_id", "must not be negative"),
    (BARE, {"lora_id": 1}, "lora_id", "needs max_loras of at least 1"),
    (WIDE, {"external_tokens": 16}, "external_tokens", "must leave at least one token of the prompt to compute"),
    (WIDE, {"external_tokens": -1}, "external_tokens", "must leave at least one token of the prompt to compute"),
    (BARE, {"external_tokens": 1}, "external_tokens", "needs use_connector"),
    (WIDE, {"items": (EncoderItem(0, 0, 1),)}, "items", "must have a length of at least 1"),
    (WIDE, {"items": (EncoderItem(0, 2, 1), EncoderItem(1, 2, 1))}, "items", "must be in order and not overlap"),
    (WIDE, {"items": (EncoderItem(14, 3, 1),)}, "items", "must lie inside the prompt"),
    (WIDE, {"items": (EncoderItem(0, 13, 1),)}, "items", "must each fit the encoder budget and the encoder cache"),
    (
        WIDE,
        {"items": (EncoderItem(0, 9, 1),)},
        "items",
        "must each fit one chunk when disable_chunked_mm_input is set",
    ),
)

GOOD_REQUESTS: tuple[dict[str, Any], ...] = (
    {"prompt_token_ids": (0,)},
    {"prompt_token_ids": (1,) * 32},
    {"external_tokens": 15},
    {"items": (EncoderItem(0, 8, 1), EncoderItem(8, 8, 1))},
    {"eos_token_id": None},
    {"priority": -1},
)

WRONG_TYPES: tuple[tuple[str, Any], ...] = (
    ("max_tokens", 1.5),
    ("max_tokens", True),
    ("priority", None),
    ("request_id", 7),
    ("prompt_token_ids", [1, 2]),
    ("prompt_token_ids", (1, True)),
    ("stop_token_ids", (1, "2")),
    ("eos_token_id", "0"),
    ("items", ((0, 1, 2),)),
    ("items", (EncoderItem(0, True, 2),)),
)


@pytest.mark.parametrize(("changes", "field", "problem"), BAD_CONFIGS)
def test_a_bad_configuration_is_refused_by_name(changes: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_config(replace(SMALL, **changes))
    assert (caught.value.field, caught.value.problem.partition(", not ")[0]) == (field, problem)


@pytest.mark.parametrize("changes", GOOD_CONFIGS)
def test_a_configuration_at_its_limit_passes(changes: dict[str, Any]) -> None:
    made = replace(SMALL, **changes)
    assert check_config(made) is made


@pytest.mark.parametrize(("config", "changes", "field", "problem"), BAD_REQUESTS)
def test_a_bad_request_is_refused_by_name(config: Any, changes: dict[str, Any], field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_request(replace(request(prompt=16), **changes), config)
    assert (caught.value.field, caught.value.problem) == (field, problem)


@pytest.mark.parametrize("changes", GOOD_REQUESTS)
def test_a_request_at_its_limit_passes(changes: dict[str, Any]) -> None:
    made = replace(request(prompt=16), **changes)
    assert check_request(made, WIDE) is made


@pytest.mark.parametrize(("field", "value"), [("num_blocks", True), ("block_size", 4.0), ("use_eagle", 1)])
def test_a_configuration_holds_values_of_their_types(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        check_config(replace(SMALL, **{field: value}))


@pytest.mark.parametrize(("field", "value"), WRONG_TYPES)
def test_a_request_holds_values_of_their_types(field: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=field):
        check_request(replace(request(prompt=16), **{field: value}), WIDE)


def test_every_row_refuses_something() -> None:
    assert {(field, problem) for _, field, problem in BAD_CONFIGS} == {(row[0], row[2]) for row in CONFIG_ROWS}
    assert {(field, problem) for _, _, field, problem in BAD_REQUESTS} == {(row[0], row[2]) for row in REQUEST_ROWS}
