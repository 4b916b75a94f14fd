"""Stored base tables agree with a Counter."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshviews.catalog.definitions import ColumnDef, TableDef
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.dictionary_mark import mark_of
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.tables.packing import packing_of
from freshviews.engine.tables.table_image import KIND, read_table_image, write_table_image
from freshviews.errors import OtherProgram, StoreError
from freshviews.kernel.codes.string_heap import LAST_CODE
from freshviews.kernel.hash.table import LOOK_AT, PENDING, SEEN_WORDS, free_table, insert_row, new_table, row_at
from freshviews.kernel.image import image_of
from freshviews.kernel.memory.mem import PURE_PYTHON, load, store
from freshviews.store.array_file import write_arrays
from freshviews.types import BIGINT, BOOLEAN, DATE, INT, NULL, STRING, TINYINT, Dictionary, SqlType, decimal

Row = tuple[int, int]
values = st.sampled_from([NULL, 0, 1, 2, 3])
updates = st.lists(st.tuples(st.tuples(values, values), st.integers(-2, 2).filter(bool)), max_size=12)


kinds = st.sampled_from([BIGINT, INT, TINYINT, STRING, DATE, decimal(5, 2)])
pairs = st.tuples(kinds, kinds)
"""Types of two columns: in words of their own, or packed into one."""


def table(
    *keys: tuple[str, ...], nullable: bool = True, types: tuple[SqlType, SqlType] = (BIGINT, BIGINT)
) -> BaseTable:
    columns = tuple(ColumnDef(name, kind, nullable) for name, kind in zip("ab", types, strict=True))
    return BaseTable(TableDef("t", columns, keys=keys))


def batch(changes: list[tuple[Row, int]]) -> CodeBatch:
    rows = np.array([[*row, m] for row, m in changes], np.int64).reshape(-1, 3)
    return CodeBatch("t", {"a": rows[:, 0], "b": rows[:, 1]}, rows[:, 2])


def contents(stored: BaseTable, rows: int = 3) -> Counter[Row]:
    """Rows with their multiplicities, added up for a row stored in parts."""
    found: Counter[Row] = Counter()
    for part in stored.batches(rows):
        for a, b, m in zip(part.columns["a"], part.columns["b"], part.multiplicities, strict=True):
            found[int(a), int(b)] += int(m)
    return found


def present(model: Counter[Row]) -> Counter[Row]:
    return Counter({row: m for row, m in model.items() if m})


@settings(max_examples=60, deadline=None)
@given(st.lists(updates, max_size=8), pairs)
def test_stored_rows_equal_the_sum_of_accepted_batches_and_refused_batches_are_undone_exactly(
    batches: list[list[tuple[Row, int]]], types: tuple[SqlType, SqlType]
) -> None:
    stored = table(("a",), types=types)
    model: Counter[Row] = Counter()
    for changes in batches:
        after = model.copy()
        for row, m in changes:
            after[row] += m
        keys: Counter[int] = Counter()
        for row, m in after.items():
            if row[0] != NULL:
                keys[row[0]] += m
        assert stored.add(batch(changes)) is None
        missing = stored.missing()
        duplicate = stored.duplicate()
        assert (missing is not None) == any(m < 0 for m in after.values())
        if missing is None:
            assert (duplicate is not None) == any(m > 1 for m in keys.values())
        if missing is None and duplicate is None:
            net = stored.net()
            if net is not None:
                change = after.copy()
                change.subtract(model)
                found = Counter(
                    {
                        (int(a), int(b)): int(m)
                        for a, b, m in zip(net.columns["a"], net.columns["b"], net.multiplicities, strict=True)
                    }
                )
                assert found == present(change)
            stored.settle()
            model = present(after)
        else:
            stored.undo()
        assert contents(stored) == model
        assert stored.rows == len(model)


def test_null_in_a_unique_column_is_never_a_duplicate() -> None:
    stored = table(("a",), ("b",))
    stored.add(batch([((NULL, 1), 1), ((NULL, 2), 1)]))
    assert stored.duplicate() is None
    stored.add(batch([((5, 2), 1)]))
    assert stored.duplicate() == (1, (2,))


def test_a_key_of_all_columns_uses_no_memory_for_a_separate_key_table() -> None:
    stored = table(("b", "a"), nullable=False)
    stored.add(batch([((1, 2), 1), ((2, 1), 1)]))
    assert stored.duplicate() is None
    assert stored.bytes < table(("a",)).bytes + 500
    stored.add(batch([((1, 2), 1)]))
    assert stored.duplicate() == (0, (1, 2))


def test_a_multiplicity_beyond_int64_stops_the_batch_at_its_row() -> None:
    stored = table()
    stopped = stored.add(batch([((1, 1), 1), ((2, 2), 2**63 - 1), ((2, 2), 1)]))
    assert stopped is not None and stopped.row == 2 and not stopped.out_of_memory
    stored.undo()
    assert contents(stored) == Counter()


def test_rows_that_share_a_key_are_found_by_a_scan() -> None:
    stored = table(("a",))
    stored.add(batch([((1, 1), 1), ((2, 1), 1), ((1, 2), 1)]))
    assert set(stored.rows_with(stored.keys[0], (1,))) == {(1, 1), (1, 2)}


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_deleting_all_inserted_rows_leaves_an_empty_table(size: int) -> None:
    stored = table(("a",))
    every = batch([((i, i % 7), 1) for i in range(size)])
    stored.add(every)
    stored.settle()
    stored.add(every.negated())
    assert stored.missing() is None
    stored.settle()
    assert contents(stored) == Counter() and stored.rows == 0


def row_table(stored: BaseTable) -> int:
    """The native table of the rows."""
    return stored.handles[0]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["insert", "insert", "insert", "change"]), updates, st.booleans()), max_size=12),
    st.booleans(),
    pairs,
)
def test_a_first_delete_adds_deferred_rows_before_it_removes_rows(
    batches: list[tuple[str, list[tuple[Row, int]], bool]], looked_at_early: bool, types: tuple[SqlType, SqlType]
) -> None:
    """Several calls may make one batch; a batch is settled, undone, or continued in a table read from an image."""
    stored = table(types=types)
    if looked_at_early:
        store(row_table(stored), LOOK_AT, 6)
    model: Counter[Row] = Counter()
    settled: Counter[Row] = Counter()
    eager = False
    for kind, changes, ends in batches:
        given = [(row, abs(m)) for row, m in changes] if kind == "insert" else changes
        eager = eager or any(m < 0 for _, m in given)
        assert stored.add(batch(given)) is None
        for row, m in given:
            model[row] += m
        if eager:
            assert load(row_table(stored), PENDING) == 0
        assert contents(stored) == present(model)
        missing = stored.missing()
        assert (missing is not None) == any(m < 0 for m in model.values())
        net = stored.net()
        if net is not None:
            change = model.copy()
            change.subtract(settled)
            found: Counter[Row] = Counter()
            for a, b, m in zip(net.columns["a"], net.columns["b"], net.multiplicities, strict=True):
                found[int(a), int(b)] += int(m)
            assert found == present(change)
        if missing is not None or not ends:
            stored.undo()
            model = settled.copy()
        else:
            stored.settle()
            settled = model.copy()
            stored = reopened(stored, types)
        assert contents(stored) == present(model)
        assert stored.rows >= len(present(model)) and (not eager or stored.rows == len(present(model)))


def reopened(stored: BaseTable, types: tuple[SqlType, SqlType]) -> BaseTable:
    """The table, written to an image and read back."""
    with tempfile.TemporaryDirectory() as folder:
        write_table_image(Path(folder) / "image", "t", stored, Dictionary(), sync=False)
        other = table(types=types)
        read_table_image(Path(folder) / "image", "t", other, Dictionary(), verify=True)
    # The journal is empty, so SEEN is not written.
    assert stored.bytes - other.bytes == 8 * load(row_table(stored), SEEN_WORDS) and other.rows == stored.rows
    stored.close()
    return other


def range_of(kind: SqlType) -> tuple[int, int]:
    """The least and the greatest code of a type."""
    bounds = {"BOOLEAN": (0, 1), "DATE": (-(2**31), 2**31 - 1), "STRING": (0, LAST_CODE)}
    return bounds.get(kind.name) or kind.bounds


@st.composite
def packed_tables(draw: st.DrawFn) -> tuple[list[ColumnDef], int, list[list[int]]]:
    """Columns of a table, the size of its key, and rows with codes at and between the ends of their types."""
    types = [BIGINT, INT, TINYINT, BOOLEAN, DATE, STRING, decimal(1, 0), decimal(9, 2), decimal(18, 0)]
    columns = [
        ColumnDef(f"c{i}", draw(st.sampled_from(types)), draw(st.booleans())) for i in range(draw(st.integers(1, 9)))
    ]
    cells = []
    for column in columns:
        least, greatest = range_of(column.type)
        codes = st.sampled_from([least, greatest, 0, 1]) | st.integers(least, greatest)
        cells.append(codes | st.just(NULL) if column.nullable else codes.filter(lambda code: code != NULL))
    return columns, draw(st.integers(0, len(columns))), draw(st.lists(st.tuples(*cells).map(list), max_size=9))


@settings(max_examples=200, deadline=None)
@given(packed_tables())
def test_packed_rows_unpack_to_the_given_rows(made: tuple[list[ColumnDef], int, list[list[int]]]) -> None:
    columns, key, given = made
    packing = packing_of(columns, key)
    assert packing.words <= len(columns) and packing.key_words <= key
    own = [set(part[:, 0].tolist()) for part in (packing.places[:key], packing.places[key:])]
    assert not own[0] & own[1] and own[0] | own[1] == set(range(packing.words))
    names = tuple(column.name for column in columns)
    keys = (names[:key],) if key else ()
    stored = BaseTable(TableDef("t", tuple(columns), keys=keys, has_primary_key=bool(key)))
    rows = np.array(given, np.int64).reshape(-1, len(columns))
    whole = {name: rows[:, i] for i, name in enumerate(names)}
    assert stored.add(CodeBatch("t", whole, np.ones(len(rows), np.int64))) is None
    stored.settle()
    found: Counter[tuple[int, ...]] = Counter()
    for part in stored.batches(4):
        cells = zip(*(part.columns[name].tolist() for name in names), strict=True)
        for row, m in zip(cells, part.multiplicities.tolist(), strict=True):
            found[row] += m
    assert found == Counter(map(tuple, given))
    for i, name in enumerate(names):
        (codes,) = stored.codes_between(0, stored.rows, [name])
        assert set(codes.tolist()) == {row[i] for row in given}


def test_narrow_columns_share_a_word() -> None:
    narrow = [ColumnDef("a", BIGINT, False), *(ColumnDef(name, TINYINT) for name in "bcdefg"), ColumnDef("h", BOOLEAN)]
    assert packing_of(narrow, 0).words == 2
    assert packing_of([ColumnDef("a", INT, False), ColumnDef("b", INT, False)], 0).words == 1
    assert packing_of([ColumnDef("a", INT), ColumnDef("b", INT)], 0).words == 2
    assert packing_of([ColumnDef("a", TINYINT), ColumnDef("b", TINYINT)], 1).words == 2


def test_a_row_takes_eight_bytes_per_word() -> None:
    kinds = {"a": BIGINT, "b": BOOLEAN, "c": TINYINT, "d": TINYINT}
    stored = BaseTable(TableDef("t", tuple(ColumnDef(name, kind, False) for name, kind in kinds.items())))
    ones = np.ones(4000, np.int64)
    stored.add(CodeBatch("t", {"a": np.arange(4000), "b": ones, "c": ones, "d": ones}, ones))
    stored.settle()
    assert 24 <= stored.bytes / 4000 < 24.5


def test_a_code_outside_the_range_of_its_type_is_refused_and_changes_nothing() -> None:
    stored = table(types=(TINYINT, TINYINT))
    stored.add(batch([((1, 2), 1)]))
    stored.settle()
    for code in (1000, -1000, 2**40, -129):
        with pytest.raises(AssertionError, match="outside the range"):
            stored.add(batch([((3, 4), 1), ((5, code), 1)]))
        stored.undo()
    assert contents(stored) == Counter({(1, 2): 1})


@pytest.mark.parametrize("kind", [BOOLEAN, TINYINT, INT, DATE, STRING, decimal(5, 2), decimal(18, 0)])
@pytest.mark.parametrize("nullable", [True, False])
def test_a_code_just_below_the_range_of_its_type_is_refused(
    kind: SqlType, nullable: bool
) -> None:
    stored = table(nullable=nullable, types=(kind, BIGINT))
    with pytest.raises(AssertionError, match="outside the range"):
        stored.add(batch([((range_of(kind)[0] - 1, 1), 1)]))
    stored.undo()
    assert contents(stored) == Counter()


def test_an_old_image_with_one_word_per_column_can_be_read(tmp_path: Path) -> None:
    rows = {(1, NULL): 1, (-3, 2): 4, (2, 2): 1}
    written_before(tmp_path / "image", 2, 0, [(*row, count) for row, count in rows.items()])
    for types in ((TINYINT, TINYINT), (BIGINT, INT)):
        stored = table(types=types)
        read_table_image(tmp_path / "image", "t", stored, Dictionary(), verify=True)
        assert contents(stored) == Counter(rows)
        stored.add(batch([((-3, 2), -4)]))
        assert stored.missing() is None
        stored.settle()
        assert contents(stored) == Counter({(1, NULL): 1, (2, 2): 1})


def written_before(path: Path, words: int, sides: int, rows: list[tuple[int, ...]]) -> None:
    """Write an image of table ``t`` as before packing: a word for each column, and one more after the count."""
    handles = [new_table(words, 1, 0, 0, 1), *(new_table(1, 1, 0, 0, 1) for _ in range(sides))]
    for h, row in enumerate(rows):
        at = row_at(handles[0], insert_row(handles[0], h))
        for i, word in enumerate((*row, 7)):
            store(at, i, word)
    images = [image_of(handle) for handle in handles]
    about = {
        "kind": KIND,
        "table": "t",
        "strings": mark_of(Dictionary()),
        "tables": [{"shape": image.shape, "kept": image.kept} for image in images],
    }
    write_arrays(path, about, [array for image in images for array in image.arrays], sync=False)
    for handle in handles:
        free_table(handle)


def test_an_image_of_a_table_with_other_keys_or_columns_is_refused(tmp_path: Path) -> None:
    written_before(tmp_path / "keyed", 2, 1, [(1, 2, 1)])
    written_before(tmp_path / "wide", 3, 0, [(1, 2, 3, 1)])
    columns = (ColumnDef("a", BIGINT), ColumnDef("b", INT))
    other = BaseTable(TableDef("t", columns, keys=(("b",),), has_primary_key=True))
    write_table_image(tmp_path / "named", "t", other, Dictionary(), sync=False)
    for name in ("keyed", "wide", "named"):
        with pytest.raises(OtherProgram, match="has other columns, keys or layout"):
            read_table_image(tmp_path / name, "t", table(types=(BIGINT, INT)), Dictionary(), verify=True)


def test_an_image_with_a_value_outside_the_range_of_its_type_is_refused(tmp_path: Path) -> None:
    written_before(tmp_path / "image", 2, 0, [(1, 1000, 1)])
    with pytest.raises(StoreError, match="image is damaged: table t"):
        read_table_image(tmp_path / "image", "t", table(types=(INT, TINYINT)), Dictionary(), verify=True)


def test_a_batch_of_inserts_and_deletes_can_be_undone() -> None:
    stored = table()
    stored.add(batch([((1, 1), 2), ((2, 2), 1)]))
    stored.settle()
    stored.add(batch([((1, 1), 1), ((3, 3), 1)]))
    assert load(row_table(stored), PENDING) == 4
    stored.add(batch([((3, 3), -1), ((1, 1), -1), ((2, 2), -1)]))
    net = stored.net()
    assert net is not None
    assert (net.columns["a"].tolist(), net.multiplicities.tolist()) == ([2], [-1])
    stored.undo()
    assert contents(stored) == Counter({(1, 1): 2, (2, 2): 1}) and stored.rows == 2


@pytest.mark.parametrize("first, second", [(2**62, 2**62), (2**63 - 1, 1), (2**62 + 1, 2**62 - 1), (1, 2**63 - 1)])
def test_counts_beyond_int64_are_refused_at_their_row(first: int, second: int) -> None:
    stored = table()
    assert stored.add(batch([((0, 0), 1), ((1, 1), first)])) is None
    stored.settle()
    stopped = stored.add(batch([((2, 2), 1), ((1, 1), second)]))
    if first + second < 2**63:
        assert stopped is None
        stored.settle()
        assert contents(stored)[1, 1] == first + second
    else:
        assert stopped is not None and stopped.row == 1 and not stopped.out_of_memory
        stored.undo()
        assert contents(stored) == Counter({(0, 0): 1, (1, 1): first})


@pytest.mark.skipif(PURE_PYTHON, reason="too slow")
def test_equal_rows_take_memory_only_once() -> None:
    stored = table()
    same = np.tile(np.arange(100), 1000)
    most = 0
    for _ in range(5):
        stored.add(CodeBatch("t", {"a": same, "b": same}, np.ones(len(same), np.int64)))
        stored.settle()
        most = max(most, stored.rows)
    assert most == 100
    assert contents(stored) == Counter({(i, i): 5000 for i in range(100)})


@pytest.mark.skipif(PURE_PYTHON, reason="too slow")
def test_inserts_of_any_number_of_distinct_rows_stay_deferred() -> None:
    stored = table()
    for start in range(0, 2_000_000, 100_000):
        every = np.arange(start, start + 100_000)
        stored.add(CodeBatch("t", {"a": every, "b": every}, np.ones(len(every), np.int64)))
        stored.settle()
    assert load(row_table(stored), PENDING) == stored.rows == 2_000_000
    stored.add(batch([((7, 7), -1)]))
    assert stored.missing() is None
    stored.settle()
    assert load(row_table(stored), PENDING) == 0 and stored.rows == 1_999_999


def test_a_table_with_a_key_defers_no_insert() -> None:
    for stored in (table(("a",)), table(("b", "a"), nullable=False)):
        stored.add(batch([((1, 1), 1)]))
        stored.settle()
        assert load(row_table(stored), PENDING) == 0


def test_undone_batches_leave_no_rows_behind() -> None:
    stored = table()
    stored.add(batch([((0, 0), 1)]))
    stored.settle()
    for _ in range(10):
        stored.add(batch([((1, 1), 2**61), ((2, 2), 1)]))
        stored.undo()
        assert load(row_table(stored), PENDING) == 1
    assert stored.rows == 1 and contents(stored) == Counter({(0, 0): 1})
