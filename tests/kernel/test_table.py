from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.hash.index import LIVE as GROUPS_LIVE
from freshviews.kernel.hash.index import slice_count, slice_of
from freshviews.kernel.hash.renew import reset_table
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import (
    JOURNALED,
    JOURNALING,
    LIVE,
    SCRATCH,
    USED,
    find,
    grow_slots,
    remove_row,
    row_at,
    row_number,
    settle,
    table_bytes,
    touch,
    upsert,
)
from freshviews.kernel.memory.mem import PURE_PYTHON, hash_key, load, store
from freshviews.types import NULL
from tests.kernel.relation import relation
from tests.kernel.words import MANY, block, code

small = st.integers(0, 5) | st.sampled_from([NULL, 2**63 - 1, -1])
steps = st.lists(
    st.tuples(st.tuples(small, small), st.tuples(st.integers(-2, 2), st.integers(-1, 1)), st.booleans()),
    max_size=60,
)


@MANY
@given(steps)
def test_a_table_with_indexes_agrees_with_a_dict(
    stream: list[tuple[tuple[int, int], tuple[int, int], bool]],
) -> None:
    with relation(2, 2, ((0,), (1,), (1, 0))) as r:
        for key, delta, _ in stream:
            r.add(key, delta)
            assert r.get(key) == r.model.get(key)
        r.agree()


@MANY
@given(steps)
def test_the_journal_has_each_touched_row_once_with_its_payload_before_the_batch(
    stream: list[tuple[tuple[int, int], tuple[int, int], bool]],
) -> None:
    with relation(2, 2, ((1,),), journal=True) as r:
        for key, delta, end in stream:
            r.add(key, delta)
            if end:
                r.agree()
                r.end_batch()
        r.agree()
        r.end_batch()
        r.agree()


@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("words", [1, 2, 3])
def test_a_long_random_stream_grows_and_shrinks_without_losing_a_row(words: int, journal: bool) -> None:
    order = random.Random(words)
    with relation(words, 1, ((words - 1,), (0,)), journal=journal) as r:
        for phase in range(6):
            growing = phase % 2 == 0
            for _ in range(100 if PURE_PYTHON else 1500):
                if not growing and r.model and order.random() < 0.8:
                    key = order.choice(list(r.model)[:50])
                    r.add(key, (-r.model[key][0],))
                else:
                    r.add(tuple(order.randrange(30) for _ in range(words)), (order.choice([-1, 1, 1]),))
            r.agree()
            if journal:
                r.end_batch()
                r.agree()


def test_deleting_all_inserted_rows_leaves_the_table_and_its_indexes_empty() -> None:
    order = random.Random(7)
    keys = [(order.randrange(40), order.randrange(40)) for _ in range(300)]
    with relation(2, 1, ((0,), (1,))) as r:
        for key in keys:
            r.add(key, (1,))
        order.shuffle(keys)
        for key in keys:
            r.add(key, (-1,))
        r.agree()
        assert load(r.t, LIVE) == 0
        assert [load(x, GROUPS_LIVE) for x in r.indexes] == [0, 0]
        used = load(r.t, USED)
        for key in keys:
            r.add(key, (1,))
        assert load(r.t, USED) == used  # freed rows are used again


def test_a_table_without_key_words_has_at_most_one_row() -> None:
    with relation(0, 1, journal=True) as r:
        assert find(r.t, ()) == 0
        r.add((), (3,))
        r.add((), (-1,))
        assert r.get(()) == (2,)
        r.agree()
        r.end_batch()
        r.add((), (-2,))
        r.agree()
        r.end_batch()
        assert load(r.t, LIVE) == 0


def test_a_row_deleted_and_inserted_in_one_batch_is_in_the_journal_once() -> None:
    with relation(1, 1, ((0,),), journal=True) as r:
        r.add((1,), (5,))
        r.end_batch()
        for delta in (-5, 2, -2, 5):
            r.add((1,), (delta,))
        assert load(r.t, JOURNALED) == 1
        assert r.journal() == {(1,): (5,)}
        r.agree()


def test_a_row_inserted_and_deleted_in_one_batch_is_removed() -> None:
    with relation(1, 1, ((0,),), journal=True) as r:
        r.add((1,), (5,))
        r.add((1,), (-5,))
        assert r.journal() == {(1,): (0,)}
        r.end_batch()
        assert find(r.t, (1,)) == 0
        assert slice_of(r.indexes[0], (1,)) == 0


def test_rows_are_removed_immediately_if_the_journal_is_switched_off() -> None:
    with relation(1, 1, journal=True) as r:
        store(r.t, JOURNALING, 0)
        r.add((1,), (1,))
        r.add((1,), (-1,))
        assert find(r.t, (1,)) == 0
        assert load(r.t, JOURNALED) == 0


def test_a_reset_table_equals_a_new_table() -> None:
    with relation(2, 1, ((0,),)) as r:
        for i in range(100):
            r.add((i % 7, i), (1,))
        reset_table(r.t)
        r.model.clear()
        r.agree()
        assert slice_count(slice_of(r.indexes[0], (3,))) == 0
        r.add((3, 3), (1,))
        r.agree()


def test_the_scratch_row_is_neither_journaled_nor_removed() -> None:
    with relation(1, 1, journal=True) as r:
        scratch = load(r.t, SCRATCH)
        touch(r.t, scratch)
        remove_row(r.t, scratch)
        settle(r.t, scratch)
        r.agree()


def test_rows_keep_their_numbers_under_inserts_and_deletes() -> None:
    with relation(1, 1) as r:
        r.add((-1,), (1,))
        number = row_number(r.t, find(r.t, (-1,)))
        for i in range(200):
            r.add((i,), (1,))
            if i % 3:
                r.add((i - 1,), (-1,))
        assert row_number(r.t, find(r.t, (-1,))) == number
        assert find(r.t, (-1,)) == row_at(r.t, number)


def test_growing_the_slots_early_changes_no_row() -> None:
    with relation(1, 1) as r:
        for i in range(10):
            r.add((i,), (1,))
            grow_slots(r.t)
        r.agree()


def test_the_hash_of_words_in_memory_equals_the_hash_of_the_key() -> None:
    for key in [(), (0,), (NULL, -1), (1, 2, 3)]:
        with block(key) as address:
            assert hash_words(address, len(key)) == hash_key(key)


SPREAD = 1000


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param([(i,) for i in range(SPREAD)], id="consecutive integers"),
        pytest.param([(-i,) for i in range(SPREAD)], id="negative integers"),
        pytest.param([(i * 10**6,) for i in range(SPREAD)], id="round decimals"),
        pytest.param([(i << 32,) for i in range(SPREAD)], id="high halves"),
        pytest.param([(i % 30, i // 30) for i in range(SPREAD)], id="pairs"),
        pytest.param([(i, i) for i in range(SPREAD)], id="equal pairs"),
        pytest.param([(code(float(i)),) for i in range(SPREAD)], id="whole doubles"),
        pytest.param([(7, code(i / 4)) for i in range(SPREAD)], id="quarters in one group"),
        pytest.param([(code(i / 100),) for i in range(SPREAD)], id="cents"),
    ],
)
def test_keys_of_every_kind_are_spread_evenly_over_the_slots(keys: list[tuple[int, ...]]) -> None:
    homes: dict[int, int] = {}
    for key in keys:
        home = hash_key(key) & 2047
        homes[home] = homes.get(home, 0) + 1
    assert max(homes.values()) <= 12
    assert len(homes) > SPREAD // 2


def test_a_row_made_by_upsert_is_found_and_has_payload_zero() -> None:
    with relation(2, 3) as r:
        row = upsert(r.t, (1, 2))
        assert r.payload(row) == (0, 0, 0)
        assert find(r.t, (1, 2)) == row
        assert find(r.t, (2, 1)) == 0
        settle(r.t, row)
        assert find(r.t, (1, 2)) == 0


def test_the_counted_bytes_of_a_table_grow_with_its_rows() -> None:
    with relation(2, 1, ((0,),)) as r:
        empty = table_bytes(r.t)
        for i in range(500):
            r.add((i % 50, i), (1,))
        assert table_bytes(r.t) >= empty + 8 * 4 * 500 + 4 * 500
