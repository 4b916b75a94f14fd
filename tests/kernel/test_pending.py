"""Deferred inserts give the same table as direct inserts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshviews.kernel.hash import table
from freshviews.kernel.hash.index import slice_of
from freshviews.kernel.hash.pending import (
    NEVER,
    append_row,
    begin_append,
    enter_oldest,
    enter_pending,
    enter_slots,
    hold,
    is_deferred,
    note_large,
    repeats,
    unlinked_rows,
)
from freshviews.kernel.hash.renew import reset_table
from freshviews.kernel.hash.shrink import shrink
from freshviews.kernel.hash.slots import hash_words
from freshviews.kernel.hash.table import (
    EAGER_BELOW,
    ENTERED,
    FAILED,
    KEY,
    LIVE,
    LOOK_AT,
    PENDING,
    USED,
    find,
    find_words,
    is_zero,
    remove_row,
    row_at,
    table_bytes,
    upsert,
)
from freshviews.kernel.memory import mem
from freshviews.kernel.memory.mem import PURE_PYTHON, add_wrapping, allocate, load, release, store
from freshviews.kernel.scalar.payload import SUM_OVERFLOW, plus
from tests.kernel.relation import Key, Payload, Relation, relation
from tests.kernel.test_image import reopened
from tests.kernel.words import MANY, block, words_at

INDEXES = ((0,), (1,), (1, 0))
small = st.integers(0, 4)
rows = st.lists(st.tuples(st.tuples(small, small), st.tuples(st.integers(1, 3), st.integers(-2, 2))), max_size=20)
operations = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "change", "change", "add", "enter", "shrink", "reset"]), rows
    ),
    max_size=12,
)


@contextmanager
def status() -> Iterator[int]:
    """The address of a status block."""
    address = allocate(3)
    try:
        yield address
    finally:
        release(address)


def put(r: Relation, key: Key, delta: Payload, appends: int, told: int) -> int:
    """Add to a row like a trigger that may append; returns whether the rest of the batch is appended."""
    row = append_row(r.t, key) if appends else upsert(r.t, key)
    for i, word in enumerate(delta):
        place = load(r.t, KEY) + i
        store(row, place, plus(load(row, place), word, told))
    if appends:
        return hold(r.t, row, told)
    note_large(r.t, row)
    if is_zero(r.t, row):
        remove_row(r.t, row)
    return 0


def note(r: Relation, key: Key, delta: Payload) -> None:
    """Add to the model."""
    new = tuple(add_wrapping(a, b) for a, b in zip(r.model.get(key, (0,) * len(delta)), delta, strict=True))
    r.model[key] = new
    if not any(new):
        del r.model[key]


def added_up(r: Relation) -> dict[Key, Payload]:
    """All rows, pending ones too, added up by key."""
    other = relation(load(r.t, KEY), load(r.t, table.PAYLOAD))
    with other as sums:
        for number in range(load(r.t, USED)):
            row = row_at(r.t, number)
            if not is_zero(r.t, row):
                note(sums, words_at(row, load(r.t, KEY)), r.payload(row))
        return dict(sums.model)


@MANY
@given(operations, st.sampled_from([4, 1 << 16]), st.sampled_from([0, 3, 1 << 16]))
def test_a_table_with_deferred_inserts_agrees_with_a_dict(
    stream: list[tuple[str, list[tuple[Key, Payload]]]], first_look: int, most: int
) -> None:
    with relation(2, 2, INDEXES) as r, status() as told:
        store(r.t, LOOK_AT, first_look)
        store(r.t, table.MOST, max(most, 2))
        for kind, batch in stream:
            if kind == "append":
                deferred, before = load(r.t, PENDING) + unlinked_rows(r.t), load(r.t, ENTERED)
                assert enter_oldest(r.t, deferred - most, told) == 0
                assert load(r.t, PENDING) + unlinked_rows(r.t) <= min(deferred, most)
                assert load(r.t, ENTERED) - before == max(deferred - most, 0)
                appends = int(load(r.t, LIVE) >= load(r.t, EAGER_BELOW))
                assert appends or load(r.t, PENDING) == 0
                for key, delta in batch:
                    appends = put(r, key, delta, appends, told)
                    note(r, key, delta)
            elif kind == "change":
                # Rows are removed by key, and others inserted, while some rows are unlinked.
                pending, entered = load(r.t, PENDING), load(r.t, ENTERED)
                assert enter_slots(r.t, told) == pending == load(r.t, ENTERED) - entered
                assert load(r.t, PENDING) == 0 and r.scan() == r.model
                for key, delta in batch:
                    r.add(key, delta)
                    assert r.get(key) == r.model.get(key)
                for key, _ in batch[::2]:
                    if key in r.model:
                        r.add(key, tuple(-word for word in r.model[key]))
                        assert r.get(key) is None
            elif kind == "shrink":
                shrink(r.t)
            elif kind == "reset":
                assert enter_pending(r.t, told) >= 0
                reset_table(r.t)
                r.model.clear()
            else:
                pending, unlinked, before = load(r.t, PENDING), unlinked_rows(r.t), load(r.t, ENTERED)
                assert enter_pending(r.t, told) == pending == load(r.t, ENTERED) - before - unlinked
                assert not is_deferred(r.t)
                r.agree()
                if kind == "add":
                    for key, delta in batch:
                        r.add(key, tuple(-word for word in delta))
            assert added_up(r) == r.model
        assert load(told, 0) == 0
        enter_pending(r.t, told)
        r.agree()


@pytest.mark.parametrize("seed", range(3))
def test_deferred_rows_stay_deferred_in_an_image(tmp_path: Path, seed: int) -> None:
    order = random.Random(seed)
    with relation(2, 1, INDEXES) as r, status() as told:
        for turn in range(8):
            if turn % 3 == 2:
                enter_pending(r.t, told)
            elif turn % 3 == 1:
                enter_slots(r.t, told)
            for _ in range(order.randrange(60)):
                key = (order.randrange(9), order.randrange(9))
                put(r, key, (1,), 1, told)
                note(r, key, (1,))
            with reopened(r, tmp_path / "image") as other:
                assert load(other.t, PENDING) == load(r.t, PENDING)
                assert unlinked_rows(other.t) == unlinked_rows(r.t)
                assert table_bytes(other.t) == table_bytes(r.t)
                assert added_up(other) == r.model
                enter_pending(other.t, told)
                other.agree()
        enter_pending(r.t, told)
        r.agree()


@pytest.mark.parametrize("seed", range(30))
def test_deferred_and_direct_inserts_report_the_same_overflow(seed: int) -> None:
    order = random.Random(seed)
    with relation(1, 2) as eager, relation(1, 2) as lazy, status() as first, status() as second:
        store(lazy.t, LOOK_AT, order.choice([10, 1000]))
        appends = 1
        for _ in range(400):
            size = order.choice([2**40, 2**58, 2**61, 2**63 - 1])
            delta = (1, order.randrange(-size, size + 1))
            key = (order.randrange(6),)
            put(eager, key, delta, 0, first)
            if appends == 0 and load(lazy.t, LIVE) >= load(lazy.t, EAGER_BELOW) and order.random() < 0.2:
                appends = 1  # the next batch
            if appends and order.random() < 0.05:
                enter_pending(lazy.t, second)
                appends = int(load(lazy.t, EAGER_BELOW) != NEVER)
            appends = put(lazy, key, delta, appends, second)
            assert load(first, 0) == load(second, 0)
            if load(first, 0):
                assert load(first, 0) == SUM_OVERFLOW
                break
        assert load(first, 0) or load(lazy.t, EAGER_BELOW) == NEVER
        enter_pending(lazy.t, second)
        assert lazy.scan() == eager.scan()


def test_inserts_are_deferred_after_a_large_batch() -> None:
    with relation(1, 1) as r, status() as told:
        store(r.t, table.APPEND_FROM, 4)

        def appends(*multiplicities: int) -> int:
            with block(multiplicities) as address:
                return begin_append(r.t, address, 1, len(multiplicities), told)

        assert [appends(1, 1, 1), appends(1, 1, 1, 1), appends(1, 1, -1, 1), appends(1, 1, 1, 0)] == [0, 1, 0, 0]
        put(r, (5,), (1,), 1, told)
        assert appends(1) == 1 and load(r.t, PENDING) == 1
        assert appends(-1) == 0 and load(r.t, PENDING) == 0 and load(r.t, LIVE) == 1
        put(r, (5,), (2**62,), 0, told)
        assert appends(1, 1, 1, 1) == 0


def test_many_equal_rows_switch_deferred_inserts_off() -> None:
    with relation(1, 1) as r, status() as told:
        store(r.t, LOOK_AT, 64)
        appends, entered_at = 1, []
        for i in range(200):
            appends = put(r, (i % 8,), (1,), appends, told)
            if appends == 0 and not entered_at:
                entered_at.append(i)
        assert entered_at == [63] and load(r.t, LIVE) == 8 and load(r.t, EAGER_BELOW) == 16
        r.model = {(i,): (25,) for i in range(8)}
        r.agree()


@pytest.mark.skipif(PURE_PYTHON, reason="too slow")
@pytest.mark.parametrize("different, merged", [(100_000, False), (95_000, False), (80_000, True), (10, True)])
def test_many_repeated_rows_are_detected_at_any_position_in_the_table(different: int, merged: bool) -> None:
    order = random.Random(different)
    keys = list(range(different)) + [order.randrange(different) for _ in range(100_000 - different)]
    order.shuffle(keys)
    with relation(2, 1) as r:
        for key in keys:
            row = append_row(r.t, (key, 3 * key))
            store(row, 2, 1)
        assert bool(repeats(r.t)) == merged


class _Scarce:
    """The C library, whose allocations fail from the n-th on."""

    def __init__(self, real: Any, left: int) -> None:
        self._real, self.left = real, left

    def calloc(self, *sizes: int) -> Any:
        self.left -= 1
        return self._real.calloc(*sizes) if self.left >= 0 else None

    def realloc(self, *given: int) -> Any:
        self.left -= 1
        return self._real.realloc(*given) if self.left >= 0 else None

    def free(self, address: int) -> None:
        self._real.free(address)


@pytest.mark.skipif(not PURE_PYTHON, reason="machine code does not ask Python for memory")
def test_running_out_of_memory_while_flushing_loses_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    real = mem._libc
    for scarce in range(60):
        with relation(2, 1, INDEXES, digests=bool(scarce % 2)) as r, status() as told:
            for i in range(120):
                key = (i % 7, i * i % 11)
                put(r, key, (1,), 1, told)
                note(r, key, (1,))
                if i == 20:
                    enter_pending(r.t, told)
            library = _Scarce(real, scarce)
            monkeypatch.setattr(mem, "_libc", library)
            entered = enter_pending(r.t, told)
            monkeypatch.setattr(mem, "_libc", real)
            assert (entered < 0) == (library.left < 0) == (load(r.t, FAILED) == 1)
            if entered >= 0:
                break
            store(r.t, FAILED, 0)
            assert added_up(r) == r.model
            for number in range(load(r.t, USED) - load(r.t, PENDING)):
                row = row_at(r.t, number)
                assert find_words(r.t, row, 2, hash_words(row, 2)) == row
            enter_pending(r.t, told)
            r.agree()
    assert scarce > 5


def test_flushed_rows_are_found_by_key_and_by_slice() -> None:
    with relation(2, 1, ((1,),)) as r, status() as told:
        for i in range(10):
            put(r, (i, 3), (i,), 1, told)
            put(r, (i, 3), (1,), 1, told)
        assert find(r.t, (4, 3)) == 0 and slice_of(r.indexes[0], (3,)) == 0
        enter_pending(r.t, told)
        assert [r.get((i, 3)) for i in range(10)] == [(i + 1,) for i in range(10)]
        assert r.slice(0, (3,)) == [(i, 3) for i in range(10)] and load(r.t, USED) == 10


def test_rows_deleted_before_a_read_never_enter_an_index() -> None:
    with relation(2, 1, INDEXES) as r, status() as told:
        for i in range(200):
            put(r, (i, i % 5), (1,), 1, told)
            note(r, (i, i % 5), (1,))
        assert enter_slots(r.t, told) == 200 and unlinked_rows(r.t) == 200
        for i in range(0, 200, 2):
            r.add((i, i % 5), (-1,))
        assert all(load(x, table.LIVE) == 0 for x in r.indexes)
        r.add((1000, 3), (1,))
        r.add((7, 2), (-1,))
        assert all(load(x, table.LIVE) == 0 for x in r.indexes) or load(r.t, USED) == 200
        enter_pending(r.t, told)
        r.agree()
        r.add((9, 4), (-1,))
        r.add((2000, 1), (1,))
        assert unlinked_rows(r.t) == 0
        r.agree()


def test_unlinked_rows_may_move_when_memory_is_released() -> None:
    with relation(2, 1, INDEXES) as r, status() as told:
        for i in range(600):
            r.add((i, 7), (1,))
        for i in range(600, 1200):
            put(r, (i, i % 5), (1,), 1, told)
            note(r, (i, i % 5), (1,))
        assert enter_slots(r.t, told) == 600
        for i in range(1100):
            if i % 6:
                r.add((i, 7 if i < 600 else i % 5), (-1,))
        for _ in range(50):
            shrink(r.t)
        assert load(r.t, USED) == load(r.t, LIVE) < 300
        assert unlinked_rows(r.t) <= 300 and all(load(x, table.LIVE) > 1 for x in r.indexes)
        enter_pending(r.t, told)
        r.agree()


@pytest.mark.skipif(not PURE_PYTHON, reason="machine code does not ask Python for memory")
def test_running_out_of_memory_while_indexing_loses_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    real = mem._libc
    for scarce in range(60):
        with relation(2, 1, INDEXES, digests=bool(scarce % 2)) as r, status() as told:
            for i in range(120):
                key = (i % 7, i * i % 11)
                put(r, key, (1,), 1, told)
                note(r, key, (1,))
            assert enter_slots(r.t, told) == 120
            library = _Scarce(real, scarce)
            monkeypatch.setattr(mem, "_libc", library)
            entered = enter_pending(r.t, told)
            monkeypatch.setattr(mem, "_libc", real)
            assert (entered < 0) == (library.left < 0) == (load(r.t, FAILED) == 1)
            if entered >= 0:
                break
            store(r.t, FAILED, 0)
            assert is_deferred(r.t) and r.scan() == r.model
            for key in list(r.model)[::3]:
                r.add(key, tuple(-word for word in r.model[key]))
            enter_pending(r.t, told)
            r.agree()
    assert scarce > 5
