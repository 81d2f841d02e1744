"""Each formula against a definition that counts: positions one by one, blocks one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec import formulas
from spec.tests.build import config, request
from spec.vocabulary import Config, Request

numbers = st.integers(0, 40)
sizes = st.integers(1, 9)


def counts(**draws: st.SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A property of the drawn numbers; the same examples on every run."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        return settings(derandomize=True, max_examples=60, database=None, deadline=None)(given(**draws)(test))

    return decorate


@counts(a=st.integers(-40, 200), b=sizes)
def test_ceil_div_is_the_least_that_covers(a: int, b: int) -> None:
    n = formulas.ceil_div(a, b)
    assert n * b >= a > (n - 1) * b


@counts(a=st.integers(-9, 9), b=st.integers(-9, 9))
def test_least_and_most(a: int, b: int) -> None:
    assert [formulas.least(a, b), formulas.most(a, b)] == sorted((a, b))


@counts(known=sizes, drafts=numbers, computed=numbers)
def test_a_running_request_wants_every_position_it_has_not_computed(known: int, drafts: int, computed: int) -> None:
    computed = min(computed, known)
    assert formulas.running_demand(known, drafts, computed) == len(range(computed, known + drafts))
    assert formulas.admission_demand(known, computed) == len(range(computed, known))


@pytest.mark.parametrize(("tokens", "threshold", "left"), [(9, 0, 9), (9, 1, 1), (9, 4, 4), (4, 4, 4), (3, 4, 3)])
def test_a_threshold_of_zero_cuts_nothing(tokens: int, threshold: int, left: int) -> None:
    assert formulas.below_threshold(tokens, threshold) == left


@counts(known=sizes, computed=numbers, tokens=numbers)
def test_scheduled_drafts_are_the_positions_behind_the_last_known_one(known: int, computed: int, tokens: int) -> None:
    computed = min(computed, known - 1)
    positions = range(computed, computed + tokens)
    assert formulas.scheduled_drafts(tokens, computed, known) == sum(p >= known for p in positions)


@counts(scheduled=st.integers(1, 9), accepted=numbers)
def test_what_is_not_accepted_is_computed_again(scheduled: int, accepted: int) -> None:
    accepted = min(accepted, scheduled)
    assert formulas.rejected_drafts(scheduled, accepted + 1) == scheduled - accepted


@counts(computed=numbers, tokens=sizes, ahead=st.integers(0, 4), held=numbers, size=sizes)
def test_blocks_needed_is_the_least_that_gives_every_position_a_slot(
    computed: int, tokens: int, ahead: int, held: int, size: int
) -> None:
    needed = formulas.blocks_needed(computed, tokens, ahead, held, size)
    assert (held + needed) * size >= computed + tokens + ahead > (held + needed - 1) * size


@counts(tokens=sizes, more=numbers, held=numbers, size=sizes)
def test_blocks_needed_never_falls_with_tokens(tokens: int, more: int, held: int, size: int) -> None:
    needed = [formulas.blocks_needed(0, n, 0, held, size) for n in (tokens, tokens + more)]
    assert needed == sorted(needed)


@counts(needed=st.integers(-3, 20), held=st.integers(0, 20), longest=numbers, size=sizes)
def test_blocks_taken_stops_at_the_model_length(needed: int, held: int, longest: int, size: int) -> None:
    taken = 0
    while taken < needed and (held + taken) * size < longest:
        taken += 1
    assert formulas.blocks_taken(needed, held, longest, size) == taken


@counts(computed=numbers, tokens=sizes, drafts=numbers, size=sizes)
def test_a_block_is_complete_if_all_its_positions_are_known(computed: int, tokens: int, drafts: int, size: int) -> None:
    whole = sum(1 for index in range(80) if (index + 1) * size <= computed + tokens - drafts)
    assert formulas.complete_blocks(computed, tokens, drafts, size) == whole


@pytest.mark.parametrize(("free", "hits", "left"), [(5, 0, 5), (5, 2, 3), (1, 2, -1)])
def test_hits_on_free_blocks_use_them_up(free: int, hits: int, left: int) -> None:
    assert formulas.available(free, hits) == left


# --- the longest footprint ----------------------------------------------------------------------


def most_asked_for(asking: Request, config: Config) -> int:
    """Slots that a lone request asks for at most, over all answers and all drafts, step by step."""
    prompt, longest = len(asking.prompt_token_ids), config.max_model_len
    asked, seen, todo = 0, set(), [(prompt, 0, 0)]
    while todo:
        known, drafts, computed = state = todo.pop()
        if state in seen or (known > prompt and (known >= longest or known - prompt >= asking.max_tokens)):
            continue
        seen.add(state)
        end = known if not computed else min(known + drafts, longest)
        asked = max(asked, end + config.lookahead)
        verified = end - known
        for said in range(1, verified + 2):
            todo += [(known + said, proposed, known) for proposed in range(config.num_speculative_tokens + 1)]
    return asked


@counts(
    prompt=st.integers(1, 12),
    max_tokens=st.integers(1, 8),
    longest=st.integers(12, 16),
    drafts=st.integers(0, 3),
    eagle=st.booleans(),
    size=st.integers(1, 4),
)
def test_the_longest_footprint_covers_all_that_is_ever_asked_for(
    prompt: int, max_tokens: int, longest: int, drafts: int, eagle: bool, size: int
) -> None:
    made = config(max_model_len=longest, block_size=size, num_speculative_tokens=drafts, use_eagle=eagle and drafts > 0)
    asking = request(prompt=prompt, max_tokens=max_tokens)
    exact = formulas.ceil_div(most_asked_for(asking, made), size)
    assert formulas.longest_footprint(asking, made) >= exact
    if not made.use_eagle or min(prompt + max_tokens, longest) - 1 > prompt:
        assert formulas.longest_footprint(asking, made) == exact
