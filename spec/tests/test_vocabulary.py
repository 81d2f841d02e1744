"""The nouns are values: they cannot change, and what they derive is exact."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from spec.tests.build import DRAFTS, EAGLE, config, grant, plan, request
from spec.vocabulary import PROFILES, QUIRKS, EncoderItem, Finish, FinishReason, ModelOutput, StepResult

VALUES: tuple[tuple[Any, str], ...] = (
    (config(), "block_size"),
    (request(), "max_tokens"),
    (ModelOutput({}), "sampled"),
    (PROFILES["vllm-0.8.5"], "quirks"),
    (grant("a", 0, 1), "tokens"),
    (plan(), "grants"),
    (Finish("a", FinishReason.STOP), "reason"),
    (StepResult((), ()), "emitted"),
    (EncoderItem(0, 1, 2), "offset"),
)


@pytest.mark.parametrize(("value", "field"), VALUES, ids=lambda v: type(v).__name__)
def test_a_value_cannot_change(value: Any, field: str) -> None:
    with pytest.raises((FrozenInstanceError, AttributeError)):
        setattr(value, field, getattr(value, field))


@pytest.mark.parametrize(
    ("changes", "lookahead"),
    [({}, 0), (DRAFTS, 0), (EAGLE, 2)],
    ids=["no drafts", "drafter without KV", "drafter with KV"],
)
def test_only_a_drafter_with_kv_looks_ahead(changes: dict[str, Any], lookahead: int) -> None:
    assert config(**changes).lookahead == lookahead


def test_an_item_ends_behind_its_last_position() -> None:
    assert EncoderItem(offset=3, length=2, content=0).end == 5


def test_drafts_are_none_unless_told() -> None:
    assert not ModelOutput({"a": (1,)}).drafts


@pytest.mark.parametrize("table", [QUIRKS, PROFILES, ModelOutput({}).drafts])
def test_shared_tables_are_read_only(table: Any) -> None:
    with pytest.raises(TypeError):
        table["x"] = "y"


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_quirks_are_off_by_default(profile: Any) -> None:
    assert not profile.quirks
