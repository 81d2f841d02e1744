"""The pool against a model of three plain lists: references, the free queue, registrations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.pool import Pool, evictable, forget_keys, oldest, publish, release, take, touch, withdraw

BLOCKS = range(1, 5)
KEYS = range(1, 4)


class Plain:
    """The same pool, written so that nothing can be wrong with it."""

    def __init__(self) -> None:
        self.refs = [0] * (len(BLOCKS) + 1)
        self.free = list(BLOCKS)
        self.registered: list[tuple[int, int]] = []

    def take(self) -> int:
        block = self.free.pop(0)
        self.refs[block] = 1
        self.withdraw(block)
        return block

    def touch(self, block: int) -> None:
        self.refs[block] += 1
        self.free = [other for other in self.free if other != block]

    def release(self, block: int) -> None:
        self.refs[block] -= 1
        if not self.refs[block]:
            self.free.append(block)

    def withdraw(self, block: int) -> None:
        self.registered = [(key, other) for key, other in self.registered if other != block]

    def hit(self, key: int) -> int | None:
        return next((block for other, block in self.registered if other == key), None)

    def key_of(self) -> dict[int, int]:
        return {block: key for key, block in self.registered}


def do_take(pool: Pool, plain: Plain, block: int, key: int) -> None:
    if plain.free:
        assert take(pool) == plain.take()


def do_touch(pool: Pool, plain: Plain, block: int, key: int) -> None:
    hit = plain.hit(key)
    if hit is not None:
        touch(pool, hit)
        plain.touch(hit)


def do_release(pool: Pool, plain: Plain, block: int, key: int) -> None:
    if plain.refs[block]:
        release(pool, block)
        plain.release(block)


def do_publish(pool: Pool, plain: Plain, block: int, key: int) -> None:
    if plain.refs[block] and block not in plain.key_of():
        publish(pool, block, key)
        plain.registered.append((key, block))


def do_withdraw(pool: Pool, plain: Plain, block: int, key: int) -> None:
    if block in plain.key_of():
        withdraw(pool, block)
        plain.withdraw(block)


def do_forget(pool: Pool, plain: Plain, block: int, key: int) -> None:
    done = not any(plain.refs)
    assert forget_keys(pool) is done
    plain.registered = [] if done else plain.registered


Action = Callable[[Pool, Plain, int, int], None]
ACTIONS: tuple[Action, ...] = (do_take, do_release, do_publish, do_touch, do_withdraw, do_forget)
moves = st.tuples(st.sampled_from(ACTIONS), st.sampled_from(BLOCKS), st.sampled_from(KEYS))


@settings(derandomize=True, max_examples=150, database=None, deadline=None)
@given(st.lists(moves, max_size=40))
def test_any_sequence_of_actions_agrees_with_the_plain_pool(sequence: list[tuple[Action, int, int]]) -> None:
    pool, plain = Pool(len(BLOCKS) + 1), Plain()
    for action, block, key in sequence:
        action(pool, plain, block, key)
        assert (pool.refs, list(pool.free)) == (plain.refs, plain.free)
        assert set(pool.free) == {block for block in BLOCKS if pool.refs[block] == 0}
        assert pool.key_of == plain.key_of()
        assert [oldest(pool, key) for key in KEYS] == [plain.hit(key) for key in KEYS]
        assert evictable(pool, BLOCKS) == len(plain.free)


def pool_with(*published: tuple[int, int]) -> Pool:
    """Five usable blocks, all free; `published` are (block, key), oldest first."""
    pool = Pool(6)
    for block, key in published:
        publish(pool, block, key)
    return pool


def test_block_zero_is_never_handed_out() -> None:
    pool = Pool(4)
    assert [take(pool) for _ in range(3)] == [1, 2, 3]
    assert not pool.free


def test_an_empty_pool_has_nothing_to_take() -> None:
    with pytest.raises(KeyError):
        take(Pool(1))


def test_a_freed_block_stays_hittable_until_it_is_taken() -> None:
    pool = pool_with((1, 7))
    assert oldest(pool, 7) == 1
    assert take(pool) == 1
    assert oldest(pool, 7) is None


def test_eviction_leaves_the_duplicate() -> None:
    pool = pool_with((1, 7), (4, 7))
    take(pool)
    assert oldest(pool, 7) == 4


def test_of_duplicates_the_oldest_registration_is_hit() -> None:
    assert oldest(pool_with((4, 7), (1, 7)), 7) == 4


def test_touch_takes_a_block_from_the_middle() -> None:
    pool = Pool(6)
    touch(pool, 3)
    assert list(pool.free) == [1, 2, 4, 5]
    assert pool.refs[3] == 1


def test_a_shared_block_stays_held_until_the_last_release() -> None:
    pool = Pool(6)
    touch(pool, 3)
    touch(pool, 3)
    release(pool, 3)
    assert 3 not in pool.free
    release(pool, 3)
    assert list(pool.free) == [1, 2, 4, 5, 3]


def test_reset_forgets_keys_and_keeps_the_order_of_the_free_queue() -> None:
    pool = pool_with((2, 7))
    release(pool, take(pool))
    assert forget_keys(pool)
    assert oldest(pool, 7) is None
    assert list(pool.free) == [2, 3, 4, 5, 1]


def test_reset_is_refused_while_a_block_is_held() -> None:
    pool = pool_with((2, 7))
    take(pool)
    assert not forget_keys(pool)
    assert oldest(pool, 7) == 2
