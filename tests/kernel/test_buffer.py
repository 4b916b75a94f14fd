from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.memory.mem import PURE_PYTHON, load, store
from freshviews.kernel.output.buffer import (
    CAPACITY,
    COUNT,
    FAILED,
    ROWS,
    append,
    clear_buffer,
    consolidate,
    free_buffer,
    new_buffer,
    reserve,
)
from tests.kernel.words import MANY, words_at

WIDTH = 3
Row = tuple[int, ...]


@pytest.fixture
def buffer() -> Iterator[int]:
    handle = new_buffer(WIDTH)
    yield handle
    free_buffer(handle)


def extend(buffer: int, rows: Iterable[Row]) -> None:
    for row in rows:
        address = append(buffer)
        for i, word in enumerate(row):
            store(address, i, word)


def rows_of(buffer: int, width: int = WIDTH) -> list[Row]:
    return [words_at(load(buffer, ROWS) + 8 * i * width, width) for i in range(load(buffer, COUNT))]


@pytest.mark.parametrize("sizes", [(0,), (1, 0, 2), (5, 40, 300, 1)])
def test_reserved_rows_follow_appended_rows_contiguously(buffer: int, sizes: tuple[int, ...]) -> None:
    expected: list[Row] = []
    for size in sizes:
        extend(buffer, [(size, -1, -1)])
        address = reserve(buffer, size)
        for i in range(size * WIDTH):
            store(address, i, i)
        expected += [(size, -1, -1), *((3 * i, 3 * i + 1, 3 * i + 2) for i in range(size))]
        assert load(buffer, COUNT) == len(expected) <= load(buffer, CAPACITY)
    assert rows_of(buffer) == expected


def merged(rows: Iterable[Row]) -> list[Row]:
    """The rows, consolidated by a dict in the order of first occurrence."""
    sums: dict[Row, int] = {}
    for *row, m in rows:
        sums[tuple(row)] = sums.get(tuple(row), 0) + m
    return [(*row, m) for row, m in sums.items() if m != 0]


def test_a_buffer_keeps_rows_in_the_order_in_which_they_were_appended(buffer: int) -> None:
    rows = [(i, -i, 2**40 + i) for i in range(200)]
    extend(buffer, rows)
    assert rows_of(buffer) == rows
    assert load(buffer, FAILED) == 0


def test_a_cleared_buffer_is_empty_and_keeps_its_capacity(buffer: int) -> None:
    extend(buffer, [(1, 2, 3)] * 100)
    room = load(buffer, CAPACITY)
    clear_buffer(buffer)
    assert rows_of(buffer) == []
    extend(buffer, [(4, 5, 6)])
    assert rows_of(buffer) == [(4, 5, 6)]
    assert load(buffer, CAPACITY) == room


word = st.integers(0, 3) | st.sampled_from([-(2**63), 2**63 - 1])


@MANY
@given(st.lists(st.tuples(word, word, st.integers(-2, 2)), max_size=60))
def test_consolidating_adds_up_equal_rows_in_order_of_first_occurrence(rows: list[Row]) -> None:
    buffer = new_buffer(WIDTH)
    extend(buffer, rows)
    consolidate(buffer)
    assert rows_of(buffer) == merged(rows)
    consolidate(buffer)
    assert rows_of(buffer) == merged(rows)
    free_buffer(buffer)


def test_a_row_keeps_its_place_while_its_multiplicity_is_zero(buffer: int) -> None:
    extend(buffer, [(1, 1, 1), (2, 2, 1), (1, 1, -1), (3, 3, 1), (1, 1, 4)])
    consolidate(buffer)
    assert rows_of(buffer) == [(1, 1, 4), (2, 2, 1), (3, 3, 1)]


def test_rows_without_columns_are_merged_into_one() -> None:
    buffer = new_buffer(1)
    extend(buffer, [(1,), (2,), (-5,)])
    consolidate(buffer)
    assert rows_of(buffer, 1) == [(-2,)]
    extend(buffer, [(2,)])
    consolidate(buffer)
    assert rows_of(buffer, 1) == []
    free_buffer(buffer)


def test_consolidating_many_rows_merges_equal_rows(buffer: int) -> None:
    n = 500 if PURE_PYTHON else 20_000
    rows = [(i % 1000, i % 7, 1 if i % 3 else -1) for i in range(n)]
    extend(buffer, rows)
    consolidate(buffer)
    assert rows_of(buffer) == merged(rows)


def test_consolidating_an_empty_buffer_leaves_the_buffer_empty(buffer: int) -> None:
    consolidate(buffer)
    assert rows_of(buffer) == []
    free_buffer(0)


@pytest.mark.skipif(PURE_PYTHON, reason="the same call of realloc")
def test_a_buffer_without_memory_is_marked_as_failed() -> None:
    buffer = new_buffer(2**40)  # a scratch row of this width cannot be allocated either
    assert buffer == 0
    buffer = new_buffer(2)
    extend(buffer, [(1, 1), (2, 2)])
    full = load(buffer, CAPACITY)
    for _ in range(full - 2):
        append(buffer)
    store(buffer, CAPACITY, 2**56)  # the next growth would request an exabyte
    store(buffer, COUNT, 2**56)
    scratch = append(buffer)
    store(scratch, 1, 9)
    assert load(buffer, FAILED) == 1
    store(buffer, COUNT, 2)
    assert rows_of(buffer, 2) == [(1, 1), (2, 2)]
    clear_buffer(buffer)
    assert load(buffer, FAILED) == 0
    free_buffer(buffer)
