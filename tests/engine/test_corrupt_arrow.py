"""Arrow data with values outside its memory is refused with column and row, and nothing outside is read."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.stream import AppendOnly, BadChange, signed_rows
from tests.engine.arrow_flips import Flips
from tests.stream.tables import table

pytestmark = pytest.mark.plain_python

SCRIPT = """CREATE TABLE t (id BIGINT, s STRING);
CREATE TABLE short (id BIGINT, s VARCHAR(3));
CREATE TABLE u (id BIGINT, s STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE k (s STRING PRIMARY KEY);
CREATE MATERIALIZED VIEW likes AS SELECT COUNT(*) AS n FROM u WHERE s LIKE '%x%'"""
CORRUPT = "the Arrow data is corrupt"


@pytest.fixture(scope="module")
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT)
        yield made


def strings(offsets: list[int], data: bytes = b"abcdefghi", wide: bool = False) -> pa.Array:
    buffers = [None, pa.py_buffer(np.array(offsets, np.int64 if wide else np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string() if wide else pa.string(), len(offsets) - 1, buffers)


def views(*changes: tuple[int, int, int], nulls: bool = False) -> pa.Array:
    """A column of views with some 32-bit words (row, word, value) replaced."""
    made = pa.array(["abc", "a text of more than twelve bytes", None if nulls else "x"], pa.string_view())
    validity, words, *data = made.buffers()
    found = np.frombuffer(words, np.int32).copy()
    for row, word, value in changes:
        found[4 * row + word] = value
    return pa.Array.from_buffers(pa.string_view(), 3, [validity, pa.py_buffer(found), *data])


def sent(batch: pa.RecordBatch, data: bytes, other: bytes) -> pa.RecordBatch:
    """A batch from a stream with replaced bytes; stream readers check no row."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    text = sink.getvalue().to_pybytes()
    assert text.count(data) == 1
    return pa.ipc.open_stream(text.replace(data, other)).read_next_batch()


STRINGS: dict[str, tuple[pa.Array, int | None]] = {
    "an offset falls": (strings([0, 5, 2, 9]), 1),
    "an offset is negative": (strings([0, 5, -8, 9]), 1),
    "an offset leads far away": (strings([0, 3, 2**30, 9]), 1),
    "a large offset falls": (strings([0, 5, 2, 9], wide=True), 1),
    "a large offset leads far away": (strings([0, 3, 2**62, 9], wide=True), 1),
    "a view has no such buffer": (views((1, 2, 7)), 1),
    "a view has a negative buffer": (views((1, 2, -1)), 1),
    "a view begins far away": (views((1, 3, 10**6)), 1),
    "a view begins before its buffer": (views((1, 3, -9)), 1),
    "a view is too long": (views((1, 0, 10**6)), 1),
    "a view is of negative length": (views((0, 0, -3)), 0),
}


@pytest.mark.parametrize("name", STRINGS)
@pytest.mark.parametrize("into", ["t", "short", "u"])
@pytest.mark.parametrize("shape", ["batch", "table", "slice"])
def test_strings_outside_of_their_column_are_refused(db: fv.Database, name: str, into: str, shape: str) -> None:
    column, row = STRINGS[name]
    rows: Any = pa.record_batch({"id": range(3), "s": column})
    if shape == "table":
        rows = pa.Table.from_batches([pa.record_batch({"id": [1], "s": pa.array(["x"], column.type)}), rows])
        row = None if row is None else row + 1
    if shape == "slice":
        if row == 0:
            pytest.skip("the row is not in the slice")
        rows, row = rows.slice(1), None if row is None else row - 1
    with pytest.raises(fv.BatchError, match=f"table {into}, row {row}, column s: {CORRUPT}") as raised:
        db.insert(into, rows)
    assert (raised.value.table, raised.value.row, raised.value.column) == (into, row, "s")
    assert not len(db.table("t")) and db.view("likes").to_arrow().num_rows == 1


@pytest.mark.parametrize("last", [2**30, -1])
@pytest.mark.parametrize("into", ["t", "short", "u"])
def test_a_last_offset_outside_of_the_column_is_refused(db: fv.Database, last: int, into: str) -> None:
    offsets = np.array([0, 3, 6, 9], np.int32)
    other = np.array([0, 3, 6, last], np.int32)
    batch = sent(pa.record_batch({"id": range(3), "s": strings([0, 3, 6, 9])}), offsets.tobytes(), other.tobytes())
    with pytest.raises(fv.BatchError, match=f"table {into}, row 2, column s: {CORRUPT}"):
        db.insert(into, batch)
    with pytest.raises(fv.BatchError, match=f"column s: .*{CORRUPT}"):
        db.table("k").lookup(batch)
    with pytest.raises(BadChange, match=f"row 2, column s: {CORRUPT}"):
        signed_rows(batch, table("CREATE TABLE t (id BIGINT, s STRING)"), AppendOnly())


@pytest.mark.parametrize("many", [2_000, 20_000])
def test_a_decreasing_offset_of_a_string_column_is_refused(db: fv.Database, many: int) -> None:
    offsets = np.arange(0, 5 * many + 1, 5, dtype=np.int32)
    offsets[many // 2] = 10 * many
    column = strings(offsets.tolist(), b"abcde" * many)
    with pytest.raises(fv.BatchError, match=f"row {many // 2 - 1}, column s: {CORRUPT}"):
        db.insert("t", pa.record_batch({"id": range(many), "s": column}))


@pytest.mark.parametrize("index", [-1, 99, 2])
@pytest.mark.parametrize("kind", [pa.int8(), pa.int64()])
def test_an_index_outside_its_dictionary_is_refused(db: fv.Database, index: int, kind: pa.DataType) -> None:
    indices, values = pa.array([0, None, index, 1], kind), pa.array(["a", "b"])
    column = pa.DictionaryArray.from_arrays(indices, values, safe=False)
    message = f"table t, row 2, column s: {CORRUPT}: index {index} is not one of the 2 values of its dictionary"
    with pytest.raises(fv.BatchError, match=message):
        db.insert("t", pa.table({"s": column}))
    numbers = pa.DictionaryArray.from_arrays(indices, pa.array([7, 8]), safe=False)
    with pytest.raises(fv.BatchError, match=f"table t, row 2, column id: {CORRUPT}"):
        db.insert("t", pa.table({"id": numbers}))


def test_offsets_in_a_dictionary_are_checked(db: fv.Database) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), strings([0, 7, 2]))
    with pytest.raises(fv.BatchError, match=f"column s: {CORRUPT}"):
        db.insert("t", pa.table({"s": column}))


def test_string_views_of_null_rows_are_not_checked(db: fv.Database) -> None:
    column = views((2, 0, 10**6), (2, 2, 77), (2, 3, -5), nulls=True)
    rows = [(0, "abc"), (1, "a text of more than twelve bytes"), (2, None)]
    for more in ({}, {"absent": 1}):
        ids = pa.array(range(3), pa.uint64() if more else pa.int64())  # uint64 takes the general way.
        db.insert("t", pa.record_batch({"id": ids, "s": column}))
        assert sorted(db.table("t")) == rows
        db.delete("t", rows)


@pytest.mark.parametrize("kind", [pa.int64(), pa.int16(), pa.float64(), pa.bool_(), pa.date32(), pa.decimal128(12, 2)])
@pytest.mark.parametrize("place", [0, 1])
def test_buffers_that_are_too_short_are_refused(kind: pa.DataType, place: int) -> None:
    of = {"int64": "BIGINT", "int16": "SMALLINT", "double": "DOUBLE", "bool": "BOOLEAN", "date32[day]": "DATE"}
    whole = pa.record_batch({"v": pa.array([None, *[1] * 4000], pa.int32()).cast(kind)})
    assert whole.column(0).buffers()[0] is not None
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, whole.schema) as writer:
        writer.write_batch(whole)
    data = bytearray(sink.getvalue().to_pybytes())
    # Metadata lists a buffer as offset and length; the length becomes 8.
    sizes = [whole.column(0).buffers()[i].size for i in (0, 1)]
    size = sizes[place] if place == 0 else -(-4001 * kind.bit_width // 8)
    at = data.index(np.int64(size).tobytes(), 100)
    data[at : at + 8] = np.int64(8).tobytes()
    batch = pa.ipc.open_stream(bytes(data)).read_next_batch()
    with fv.Database() as db:
        db.execute(f"CREATE TABLE n (v {of.get(str(kind), 'DECIMAL(12, 2)')})")
        with pytest.raises(fv.BatchError, match=f"column v: {CORRUPT}"):
            db.insert("n", batch)


@pytest.mark.parametrize(("word", "value"), [(0, -1), (1, -7)])
def test_an_arrow_structure_with_a_negative_length_or_count_is_refused(db: fv.Database, word: int, value: int) -> None:
    batch = pa.record_batch({"id": [1, 2, 3]})
    array, schema = (ctypes.c_int64 * 10)(), (ctypes.c_int64 * 9)()
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    (ctypes.c_int64 * 10).from_address(ctypes.c_int64.from_address(array[6]).value)[word] = value
    given = pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema))
    with pytest.raises(fv.BatchError, match=f"table t, .*column id: {CORRUPT}"):
        db.insert("t", given)


def test_column_names_that_are_not_utf8_are_refused(db: fv.Database) -> None:
    batch = sent(pa.record_batch({"identity": [1]}), b"identity", b"ident\xfftt")
    with pytest.raises(fv.BatchError, match="table t: a column name in the Arrow schema is not valid UTF-8"):
        db.insert("t", batch)
    with pytest.raises(BadChange, match="a column name in the Arrow schema is not valid UTF-8"):
        signed_rows(batch, table("CREATE TABLE t (id BIGINT)"), AppendOnly())


@pytest.mark.parametrize("name", STRINGS)
def test_lookup_keys_and_streamed_rows_are_checked_too(db: fv.Database, name: str) -> None:
    column, row = STRINGS[name]
    with pytest.raises(fv.BatchError, match=f"column s: .*{CORRUPT}") as raised:
        db.table("k").lookup(pa.record_batch({"s": column}))
    assert raised.value.row == row
    with pytest.raises(BadChange, match=f"row {row}, column s: {CORRUPT}"):
        signed_rows(pa.table({"s": column}), table("CREATE TABLE t (s STRING)"), AppendOnly(), set_aside=True)


def test_a_stream_that_ends_early_is_refused(db: fv.Database) -> None:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"id": range(100)})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    for given in (pa.ipc.open_stream(data[:-300]), _Stream(pa.ipc.open_stream(data[:-300]))):
        with pytest.raises(fv.BatchError, match="table t: the Arrow stream cannot be read to its end"):
            db.insert("t", given)
    assert not len(db.table("t"))


class _Stream:
    """An object that only offers a stream, as frames of other libraries do."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def __arrow_c_stream__(self, schema: Any = None) -> Any:
        return self._reader.__arrow_c_stream__(schema)


NAMELESS = {"int": [{10**5000: 1}], "NULL": [{None: 1}], "bytes": [{b"id": 1}], "0-d": np.array(3)}


@pytest.mark.parametrize("rows", NAMELESS.values(), ids=NAMELESS)
def test_rows_without_column_names_are_refused(db: fv.Database, rows: Any) -> None:
    with pytest.raises(fv.BatchError, match=r"table t.*(there is no column|iteration over a 0-d array)"):
        db.insert("t", rows)


def test_randomly_changed_bytes_are_accepted_or_refused() -> None:
    flips = Flips()
    for number in range(400):
        flips.run(1, number)
    flips.close()
    assert flips.counts["accepted"] > 20 and flips.counts["refused: BatchError"] > 20, flips.counts
