"""Where a request ends, and the most blocks that it can need until then.

Stop rules in the order in which they are asked (FIN-1), and the test that turns down a request
that could never be served even if it had the pool for itself (PRG-2).
"""

from __future__ import annotations

from collections.abc import Callable

from reference.live_request import LiveRequest
from spec.vocabulary import Config, Finish, FinishReason, Request

StopRule = Callable[[LiveRequest, int, Config], bool]


def _is_eos(live: LiveRequest, token: int, config: Config) -> bool:
    return not live.request.ignore_eos and token == live.request.eos_token_id


def _is_stop_token(live: LiveRequest, token: int, config: Config) -> bool:
    return token in live.request.stop_token_ids


def _fills_model_length(live: LiveRequest, token: int, config: Config) -> bool:
    return len(live.tokens) >= config.max_model_len


def _uses_up_max_tokens(live: LiveRequest, token: int, config: Config) -> bool:
    return live.outputs >= live.request.max_tokens


# What the model says comes first: an EOS at the last permitted position ended the text by itself.
STOP_RULES: tuple[tuple[StopRule, FinishReason, bool], ...] = (
    (_is_eos, FinishReason.STOP, False),
    (_is_stop_token, FinishReason.STOP, True),
    (_fills_model_length, FinishReason.LENGTH, False),
    (_uses_up_max_tokens, FinishReason.LENGTH, False),
)
"""(rule, reason, whether the finish names the token); the first rule that holds decides."""


def finish_after(live: LiveRequest, token: int, config: Config) -> Finish | None:
    """How a request ends with the token just appended, or None if it goes on (FIN-1)."""
    for holds, reason, names_token in STOP_RULES:
        if holds(live, token, config):
            return Finish(live.request_id, reason, token if names_token else None)
    return None


def footprint_blocks(request: Request, config: Config) -> int:
    """The most blocks that a request can need at once (PRG-1).

    The last token that it may have is never computed, but K drafts may stand behind the one
    before it.  Drafts come with the first sampled token, from a drafter with KV even before,
    and that one wants its lookahead slots on top.
    """
    prompt = len(request.prompt_token_ids)
    last_computed = max(prompt, min(prompt + request.max_tokens, config.max_model_len) - 1)
    if config.use_eagle or last_computed > prompt:
        last_computed = min(last_computed + config.num_speculative_tokens, config.max_model_len)
    return ceil_div(last_computed + config.lookahead, config.block_size)


def ceil_div(amount: int, size: int) -> int:
    """How many pieces of `size` cover `amount`."""
    return -(-amount // size)
