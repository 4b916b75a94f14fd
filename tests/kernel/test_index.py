from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.hash.index import BLOCK_CAPACITY, INLINE, SCANNED, slice_count, slice_of, slice_rows
from freshviews.kernel.hash.table import table_bytes
from freshviews.kernel.memory.mem import PURE_PYTHON, load, load32
from tests.kernel.relation import relation
from tests.kernel.words import MANY


def test_a_slice_that_has_no_row_is_empty() -> None:
    with relation(2, 1, ((0,),)) as r:
        group = slice_of(r.indexes[0], (4,))
        assert group == 0
        assert slice_count(group) == 0
        assert slice_rows(group) == 0


def test_three_row_numbers_of_a_slice_are_stored_outside_its_group() -> None:
    with relation(2, 1, ((0,),)) as r:
        for i in range(3):
            r.add((1, i), (1,))
            capacity = load(slice_of(r.indexes[0], (1,)), BLOCK_CAPACITY)
            assert (capacity == INLINE) == (i < 2)
            r.agree()


def test_removing_from_a_slice_moves_its_last_row_into_the_gap() -> None:
    with relation(2, 1, ((0,),)) as r:
        for i in range(5):
            r.add((1, i), (1,))
        r.add((1, 1), (-1,))
        rows = slice_rows(slice_of(r.indexes[0], (1,)))
        assert [load32(rows, i) for i in range(4)] == [0, 4, 2, 3]


def test_an_emptied_group_releases_its_block() -> None:
    with relation(2, 1, ((0,),)) as r:
        r.add((0, 0), (1,))
        before = table_bytes(r.t)
        for _ in range(3):
            for i in range(7):
                r.add((1, i), (1,))
            for i in range(7):
                r.add((1, i), (-1,))
        assert slice_of(r.indexes[0], (1,)) == 0
        # Seven rows stay allocated, and slots may have grown once; no block stays.
        assert table_bytes(r.t) <= before + 8 * (7 * 4 + 16)


@MANY
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 8), st.integers(0, 2)), max_size=80))
def test_indexes_on_any_key_positions_follow_inserts_and_deletes(keys: list[tuple[int, int, int]]) -> None:
    with relation(3, 1, ((0,), (2, 1), (1, 2, 0), (0, 1))) as r:
        for key in keys:
            r.add(key, (-1 if key in r.model else 1,))
        r.agree()


def test_a_crowded_slice_stays_right_under_a_random_stream() -> None:
    order = random.Random(3)
    with relation(2, 1, ((0,), (1,))) as r:
        for _ in range(300 if PURE_PYTHON else 6000):
            group = 0 if order.random() < 0.5 else order.randrange(1000)
            key = (group, order.randrange(400))
            r.add(key, (-1 if key in r.model else 1,))
        r.agree()


@MANY
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=120))
def test_rows_of_a_slice_are_found_by_their_digests(keys: list[tuple[int, int]]) -> None:
    with relation(2, 1, ((0,), (1,)), digests=True) as r:
        for key in keys:
            r.add(key, (-1 if key in r.model else 1,))
            r.agree()


def test_digests_of_a_long_slice_move_with_its_blocks() -> None:
    with relation(2, 1, ((0,), (1,)), digests=True) as r:
        for i in range(SCANNED + 3):
            r.add((1, i), (1,))
        r.agree()
        for i in range(0, SCANNED + 3, 2):
            r.add((1, i), (-1,))
        r.agree()
        for i in range(1, SCANNED + 3, 2):
            r.add((1, i), (-1,))
        assert slice_of(r.indexes[0], (1,)) == 0
