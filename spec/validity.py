"""What a configuration and a request must satisfy before any scheduler sees them.

Tables of (field, test, sentence): the first row that does not hold names the field.  The tests
run after every value was found to have its declared type, so that `True` is not a number of
blocks and 1.5 is not a priority.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from spec.vocabulary import Config, EncoderItem, Request


class InvalidInput(ValueError):
    """A value that no scheduler can be asked to handle.  `field` names it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


CONFIG_ROWS: tuple[tuple[str, Callable[[Config], bool], str], ...] = (
    ("num_blocks", lambda c: c.num_blocks >= 2, "must be at least 2, because block 0 is reserved"),
    ("block_size", lambda c: c.block_size >= 1, "must be at least 1 token"),
    ("max_num_seqs", lambda c: c.max_num_seqs >= 1, "must be at least 1"),
    ("max_num_batched_tokens", lambda c: c.max_num_batched_tokens >= 1, "must be at least 1"),
    (
        "max_num_batched_tokens",
        lambda c: c.max_num_batched_tokens >= c.max_num_seqs,
        "must be at least max_num_seqs",
    ),
    ("max_model_len", lambda c: c.max_model_len >= 1, "must be at least 1 token"),
    ("long_prefill_token_threshold", lambda c: c.long_prefill_token_threshold >= 0, "must not be negative"),
    ("num_speculative_tokens", lambda c: c.num_speculative_tokens >= 0, "must not be negative"),
    (
        "use_eagle",
        lambda c: not c.use_eagle or c.num_speculative_tokens >= 1,
        "needs num_speculative_tokens of at least 1",
    ),
    ("max_loras", lambda c: c.max_loras >= 0, "must not be negative"),
    ("max_num_encoder_input_tokens", lambda c: c.max_num_encoder_input_tokens >= 0, "must not be negative"),
    (
        "encoder_cache_size",
        lambda c: (c.encoder_cache_size > 0) == (c.max_num_encoder_input_tokens > 0),
        "must be set together with max_num_encoder_input_tokens",
    ),
)

REQUEST_ROWS: tuple[tuple[str, Callable[[Request, Config], bool], str], ...] = (
    ("request_id", lambda r, c: r.request_id != "", "must not be empty"),
    ("prompt_token_ids", lambda r, c: len(r.prompt_token_ids) >= 1, "must not be empty"),
    ("prompt_token_ids", lambda r, c: len(r.prompt_token_ids) <= c.max_model_len, "is longer than max_model_len"),
    ("prompt_token_ids", lambda r, c: min(r.prompt_token_ids) >= 0, "must hold no negative token id"),
    ("max_tokens", lambda r, c: r.max_tokens >= 1, "must be at least 1"),
    ("lora_id", lambda r, c: r.lora_id >= 0, "must not be negative"),
    ("lora_id", lambda r, c: r.lora_id == 0 or c.max_loras > 0, "needs max_loras of at least 1"),
    (
        "external_tokens",
        lambda r, c: 0 <= r.external_tokens < len(r.prompt_token_ids),
        "must leave at least one token of the prompt to compute",
    ),
    ("external_tokens", lambda r, c: r.external_tokens == 0 or c.use_connector, "needs use_connector"),
    ("items", lambda r, c: all(i.length >= 1 and i.offset >= 0 for i in r.items), "must have a length of at least 1"),
    ("items", lambda r, c: all(a.end <= b.offset for a, b in pairwise(r.items)), "must be in order and not overlap"),
    (
        "items",
        lambda r, c: not r.items or r.items[-1].end <= len(r.prompt_token_ids),
        "must lie inside the prompt",
    ),
    (
        "items",
        lambda r, c: all(i.length <= min(c.encoder_cache_size, c.max_num_encoder_input_tokens) for i in r.items),
        "must each fit the encoder budget and the encoder cache",
    ),
    (
        "items",
        lambda r, c: (
            not (r.items and c.disable_chunked_mm_input) or max(i.length for i in r.items) <= _longest_chunk(c)
        ),
        "must each fit one chunk when disable_chunked_mm_input is set",
    ),
)


def check_config(config: Config) -> Config:
    """The configuration itself (CFG-2); raises InvalidInput naming the first field that is wrong."""
    _check_types(config, _CONFIG_TYPES)
    for field, holds, problem in CONFIG_ROWS:
        if not holds(config):
            raise InvalidInput(field, f"{problem}, not {getattr(config, field)!r}")
    return config


def check_request(request: Request, config: Config) -> Request:
    """The request itself (CFG-6); raises InvalidInput naming the first field that is wrong."""
    _check_types(request, _REQUEST_TYPES)
    for field in ("prompt_token_ids", "stop_token_ids"):
        if any(type(token) is not int for token in getattr(request, field)):
            raise InvalidInput(field, "must hold whole numbers only")
    if any(not isinstance(item, EncoderItem) or any(type(x) is not int for x in item) for item in request.items):
        raise InvalidInput("items", "must hold (offset, length, content) in whole numbers")
    for field, holds, problem in REQUEST_ROWS:
        if not holds(request, config):
            raise InvalidInput(field, problem)
    return request


def _longest_chunk(config: Config) -> int:
    threshold = config.long_prefill_token_threshold
    return min(config.max_num_batched_tokens, threshold) if threshold else config.max_num_batched_tokens


_CONFIG_TYPES = {
    name: bool if name in ("enable_prefix_caching", "use_eagle", "disable_chunked_mm_input", "use_connector") else int
    for name in Config.__slots__
}

_REQUEST_TYPES: dict[str, type | tuple[type, ...]] = {
    "request_id": str,
    "prompt_token_ids": tuple,
    "max_tokens": int,
    "eos_token_id": (int, type(None)),
    "ignore_eos": bool,
    "stop_token_ids": tuple,
    "lora_id": int,
    "items": tuple,
    "needs_grammar": bool,
    "prompt_logprobs": bool,
    "external_tokens": int,
    "priority": int,
}


def _check_types(value: object, types: Mapping[str, type | tuple[type, ...]]) -> None:
    for field, expected in types.items():
        allowed = expected if isinstance(expected, tuple) else (expected,)
        found = getattr(value, field)
        if type(found) not in allowed:
            names = " or ".join("whole number" if t is int else t.__name__ for t in allowed)
            raise InvalidInput(field, f"must be a {names}, not {found!r}")
