"""Prefix keys: equal exactly where the content is, and forgotten when nobody needs them."""

from __future__ import annotations

import pytest

from reference.prefix_keys import ROOT, BlockContent, PrefixKeys

FIRST = BlockContent(ROOT, (1, 2), 0, ())


@pytest.mark.parametrize(
    "other",
    [
        BlockContent(ROOT, (1, 3), 0, ()),
        BlockContent(ROOT, (1, 2), 1, ()),
        BlockContent(ROOT, (1, 2), 0, ((1, 0),)),
        BlockContent(ROOT, (1,), 0, ()),
        BlockContent(1, (1, 2), 0, ()),
    ],
)
def test_each_part_of_the_content_counts(other: BlockContent) -> None:
    keys = PrefixKeys()
    first = keys.intern(FIRST)
    assert first != ROOT
    assert keys.intern(other) != first
    assert keys.intern(FIRST) == first


def test_an_adapter_is_not_mistaken_for_an_item() -> None:
    keys = PrefixKeys()
    adapter = keys.intern(BlockContent(ROOT, (1, 2), 5, ()))
    item = keys.intern(BlockContent(ROOT, (1, 2), 0, ((5, 0),)))
    assert adapter != item


def test_a_key_lives_as_long_as_it_is_held() -> None:
    keys = PrefixKeys()
    key = keys.intern(FIRST)
    keys.retain(key)
    keys.release(key)
    assert keys.intern(FIRST) == key
    keys.release(key)
    keys.release(key)
    assert len(keys) == 0


def test_a_number_is_never_used_twice() -> None:
    keys = PrefixKeys()
    key = keys.intern(FIRST)
    keys.release(key)
    assert keys.intern(FIRST) != key
    with pytest.raises(KeyError):
        keys.retain(key)


def test_a_child_keeps_its_parent() -> None:
    keys = PrefixKeys()
    parent = keys.intern(FIRST)
    child = keys.intern(BlockContent(parent, (3, 4), 0, ()))
    keys.release(parent)
    assert keys.intern(FIRST) == parent
    keys.release(parent)
    keys.release(child)
    assert len(keys) == 0


def test_a_long_chain_is_forgotten_at_once() -> None:
    keys = PrefixKeys()
    parent = ROOT
    for token in range(5000):
        child = keys.intern(BlockContent(parent, (token,), 0, ()))
        keys.release(parent)
        parent = child
    assert len(keys) == 5000
    keys.release(parent)
    assert len(keys) == 0
