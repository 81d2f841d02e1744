"""Arithmetic of scheduling, on whole numbers.

Every function is total for the values that `validity` admits and uses only + - * // and
comparisons, so that the same text is executed and proved.
"""

from __future__ import annotations

from spec.vocabulary import Config, Request


def ceil_div(a: int, b: int) -> int:
    """The least n with n * b >= a, for b >= 1."""
    return -(-a // b)


def least(a: int, b: int) -> int:
    return a if a <= b else b


def most(a: int, b: int) -> int:
    return a if a >= b else b


# --- tokens ------------------------------------------------------------------------------------


def running_demand(known: int, drafts: int, computed: int) -> int:
    """Tokens that a running request wants: all known ones and its drafts (RUN-3)."""
    return known + drafts - computed


def admission_demand(known: int, computed: int) -> int:
    """Tokens that a waiting request wants: known ones only, its drafts wait (ADM-6)."""
    return known - computed


def below_threshold(tokens: int, threshold: int) -> int:
    """At most `threshold` tokens of one request in one step; 0 means no threshold (RUN-4)."""
    return threshold if 0 < threshold < tokens else tokens


def scheduled_drafts(tokens: int, computed: int, known: int) -> int:
    """How many tokens of a grant are drafts: those behind the last known one (SPEC-2)."""
    return most(tokens + computed - known, 0)


def rejected_drafts(scheduled: int, generated: int) -> int:
    """Draft positions to compute again: each step yields one token beyond its accepted drafts (SPEC-4)."""
    return scheduled + 1 - generated


# --- blocks ------------------------------------------------------------------------------------


def blocks_needed(computed: int, tokens: int, lookahead: int, held: int, block_size: int) -> int:
    """Blocks missing from a table of `held` blocks; not positive if there are enough (ALLOC-A).

    The lookahead is not cut at the model length here: the capacity test comes first (ALLOC-4).
    """
    return ceil_div(computed + tokens + lookahead, block_size) - held


def available(free: int, evictable_hits: int) -> int:
    """Free blocks that can be taken: a hit on a free block uses that block up (ALLOC-1)."""
    return free - evictable_hits


def blocks_taken(needed: int, held: int, max_model_len: int, block_size: int) -> int:
    """Blocks really taken: no table grows beyond the model length (ALLOC-4)."""
    return most(least(needed, ceil_div(max_model_len, block_size) - held), 0)


def complete_blocks(computed: int, tokens: int, drafts: int, block_size: int) -> int:
    """Blocks that the scheduled tokens complete, drafts left out: they may be rejected (CACHE-5, CACHE-8)."""
    return most(computed + tokens - drafts, 0) // block_size


def longest_footprint(request: Request, config: Config) -> int:
    """Blocks that `request` needs at its longest, alone (PRG-1).

    The last token is sampled and never computed.  Drafts may stand behind the last known token, but only
    a drafter with KV proposes any before the first token was sampled.
    """
    prompt = len(request.prompt_token_ids)
    last_known = most(least(prompt + request.max_tokens, config.max_model_len) - 1, prompt)
    drafts = config.num_speculative_tokens if config.use_eagle or last_known > prompt else 0
    return ceil_div(least(last_known + drafts, config.max_model_len) + config.lookahead, config.block_size)
