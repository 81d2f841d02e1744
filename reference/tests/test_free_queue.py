"""The free queue against a plain list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.free_queue import FreeQueue


def test_starts_with_all_usable_blocks_in_order() -> None:
    assert list(FreeQueue(5)) == [1, 2, 3, 4]
    assert list(FreeQueue(2)) == [1]


def test_removal_from_front_middle_and_back() -> None:
    queue = FreeQueue(7)
    for block in (1, 3, 6):
        queue.remove(block)
    assert list(queue) == [2, 4, 5]
    assert len(queue) == 3


def test_append_goes_to_the_back_of_an_empty_queue_too() -> None:
    queue = FreeQueue(3)
    assert (queue.pop_front(), queue.pop_front()) == (1, 2)
    assert list(queue) == []
    queue.append(2)
    queue.append(1)
    assert list(queue) == [2, 1]


def test_what_is_not_free_cannot_leave_and_what_is_free_cannot_enter() -> None:
    queue = FreeQueue(2)
    with pytest.raises(ValueError, match="block 1 cannot become free"):
        queue.append(1)
    queue.pop_front()
    with pytest.raises(ValueError, match="block 1 is not free"):
        queue.remove(1)
    with pytest.raises(IndexError, match="no free block"):
        queue.pop_front()


def test_the_reserved_block_never_enters_or_leaves() -> None:
    queue = FreeQueue(3)
    assert 0 not in queue
    with pytest.raises(ValueError, match="block 0"):
        queue.append(0)
    with pytest.raises(ValueError, match="block 0"):
        queue.remove(0)


@given(st.integers(2, 9), st.lists(st.integers(0, 8), max_size=40))
def test_behaves_like_a_list(num_blocks: int, moves: list[int]) -> None:
    queue = FreeQueue(num_blocks)
    model = list(range(1, num_blocks))
    for block in moves:
        if block in model:
            queue.remove(block)
            model.remove(block)
        elif block == 0 and model:
            assert queue.pop_front() == model.pop(0)
        elif 0 < block < num_blocks:
            queue.append(block)
            model.append(block)
        assert list(queue) == model
        assert len(queue) == len(model)
        assert all((block in queue) == (block in model) for block in range(num_blocks))
