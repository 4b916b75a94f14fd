"""Views, tables and changes are read by polars, DuckDB, pyarrow and pandas, and a frame becomes a table."""

from __future__ import annotations

import datetime as dt
import pickle
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import freshviews as fv
from tests.engine.shop import shop

pytestmark = pytest.mark.plain_python()


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with shop() as made:
        yield made


@pytest.mark.parametrize("name", ["orders", "items", "by_part", "bought"])
def test_the_arrow_interface_serves_polars_duckdb_and_pyarrow(
    db: fv.Database, name: str
) -> None:
    rows: fv.Table | fv.View = db.table(name) if name in db.tables else db.view(name)
    arrow = rows.to_arrow()
    assert pa.table(rows).equals(arrow) and pa.schema(rows) == arrow.schema
    assert pl.DataFrame(rows).equals(pl.from_arrow(arrow))
    assert sorted(duckdb.sql("SELECT * FROM rows").fetchall(), key=str) == sorted(rows, key=str)
    assert duckdb.sql("SELECT COUNT(*) FROM rows").fetchall() == [(len(rows),)]


def test_a_change_is_read_as_a_frame_with_a_column_of_multiplicities(db: fv.Database) -> None:
    changes: list[fv.Change] = []
    db.view("by_part").subscribe(changes.append)
    db.insert("items", [(1, "bolt", 4)])
    (change,) = changes
    wanted = [("bolt", 6, 2, -1), ("bolt", 10, 3, 1)]
    assert pl.DataFrame(change).rows() == change.to_polars().rows() == wanted
    assert [*change.to_pandas().itertuples(index=False, name=None)] == wanted
    assert pa.table(change).equals(change.to_arrow()) and pa.schema(change) == change.to_arrow().schema
    assert duckdb.sql("SELECT * FROM change").fetchall() == wanted
    assert change.head(1).to_pylist() == change.to_arrow().to_pylist()[:1]
    assert change.head(0).num_rows == 0 and change.head(9).num_rows == len(change) == 2


def test_the_change_of_a_view_can_be_applied_to_a_table(db: fv.Database) -> None:
    db.execute("CREATE TABLE copy (part STRING, qty BIGINT, n BIGINT)")
    db.insert("copy", db.view("by_part"))
    changes: list[fv.Change] = []
    db.view("by_part").subscribe(changes.append)
    db.insert("items", [(1, "bolt", 4), (1, "screw", 4)])
    db.apply("copy", changes[0])
    assert sorted(db.table("copy")) == sorted(db.view("by_part"))


def test_pandas_takes_column_names_from_the_first_row(db: fv.Database) -> None:
    view = db.view("by_part")
    frame = pd.DataFrame(view)
    assert [*frame.columns] == ["part", "qty", "n"] and len(frame) == len(view)
    assert [*pd.DataFrame(db.table("items")).columns] == ["o_id", "part", "qty"]


def test_the_first_row_of_a_view_is_printed_and_pickled_as_a_plain_tuple(db: fv.Database) -> None:
    rows = [*db.view("by_part")]
    assert repr(rows[:1]) == "[('bolt', 6, 2)]"
    assert type(pickle.loads(pickle.dumps(rows[0]))) is tuple
    db.execute("CREATE TABLE copy (part STRING, qty BIGINT, n BIGINT)")
    db.insert("copy", rows[:1])
    db.insert("copy", rows)
    assert sorted(db.table("copy")) == sorted([*rows, rows[0]])


def test_the_method_head_reads_the_first_rows_in_the_order_of_the_view(db: fv.Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW sorted AS SELECT part, qty FROM by_part ORDER BY qty DESC")
    view = db.view("sorted")
    assert view.head(2).to_pylist() == view.to_arrow().to_pylist()[:2] != []
    assert view.head(0).num_rows == 0 and view.head(0).schema == view.schema
    assert view.head().num_rows == len(view) and db.table("orders").head(1).num_rows == 1
    for wrong in (-1, 1.0, True, None):
        with pytest.raises(fv.ArgumentError, match=r"head\(n\): a whole number, 0 or more, is expected, not"):
            view.head(wrong)  # type: ignore[arg-type]


def test_the_method_head_repeats_a_row_by_its_multiplicity(db: fv.Database) -> None:
    assert db.table("items").head(2).num_rows == 2


def test_the_method_head_continues_with_the_next_block_of_a_union_view(db: fv.Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW both AS SELECT part FROM items UNION ALL SELECT part FROM by_part")
    view = db.view("both")
    assert [view.head(n).num_rows for n in range(8)] == [0, 1, 2, 3, 4, 5, 6, 6]
    assert len(view) == 6 and len(repr(view).splitlines()) == 3 + 6


def test_reading_a_closed_database_by_arrow_is_an_error(db: fv.Database) -> None:
    view = db.view("by_part")
    db.close()
    for read in (pl.DataFrame, pa.table):
        with pytest.raises(fv.FreshviewsError, match="the database is closed"):
            read(view)


def test_duckdb_reads_a_view_while_the_version_is_held(db: fv.Database) -> None:
    view, found = db.view("by_part"), list[list[Any]]()
    with db.at_one_version():
        assert duckdb.sql("SELECT SUM(a.qty) FROM view a JOIN view b USING (part)").fetchall() == [(11,)]
    # Subscribers are called while the version is held.
    def read(change: fv.Change, view: fv.View = view) -> None:
        found.append(duckdb.sql("SELECT SUM(qty) FROM view").fetchall())

    view.subscribe(read)
    db.insert("items", [(1, "bolt", 4)])
    db.insert("items", [(1, "bolt", 5)])
    assert found == [[(15,)], [(20,)]] == [found[0], duckdb.sql("SELECT SUM(qty) FROM view").fetchall()]
    db.close()
    with pytest.raises(fv.FreshviewsError, match="the database is closed"):
        pl.DataFrame(view)


FRAME = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "weight": pa.array([1.5, None], pa.float32()),
        "price": pa.array([Decimal("1.50"), Decimal("22.05")], pa.decimal128(10, 2)),
        "name": pa.array(["bolt", None]),
        "kind": pa.array(["a", "b"]).dictionary_encode(),
        "day": pa.array([dt.date(2026, 1, 5), None]),
        "at": pa.array([dt.datetime(2026, 1, 5, 12, 30), None], pa.timestamp("ns", "UTC")),
        "new": pa.array([True, False]),
    }
)
TYPES = ["INT", "FLOAT", "DECIMAL(10, 2)", "STRING", "STRING", "DATE", "TIMESTAMP", "BOOLEAN"]
ROWS = [
    (1, 1.5, Decimal("1.50"), "bolt", "a", dt.date(2026, 1, 5), dt.datetime(2026, 1, 5, 12, 30), True),
    (2, None, Decimal("22.05"), None, "b", None, None, False),
]


def types_of(db: fv.Database, table: str) -> list[str]:
    return [str(column.type) for column in db.table(table)._state.definition.columns]


@pytest.mark.parametrize(
    "frame_of",
    [
        lambda: FRAME,
        lambda: FRAME.to_batches()[0],
        lambda: FRAME.to_reader(),
        lambda: pl.from_arrow(FRAME),
        lambda: FRAME.to_pandas(),
        lambda: duckdb.from_arrow(FRAME),
    ],
    ids=["table", "record batch", "reader", "polars", "pandas", "duckdb"],
)
def test_a_frame_becomes_a_table_with_its_types_and_rows(frame_of: Callable[[], Any]) -> None:
    db = fv.Database()
    assert db.create_table("goods", frame_of(), key="ID") == db.version == 1
    # pandas has no types of decimals, so pyarrow counts the digits.
    is_pandas = isinstance(frame_of(), pd.DataFrame)
    assert types_of(db, "goods") == ([*TYPES[:2], "DECIMAL(4, 2)", *TYPES[3:]] if is_pandas else TYPES)
    assert sorted(db.table("goods")) == ROWS
    with pytest.raises(fv.BatchError, match="PRIMARY KEY"):
        db.insert("goods", [ROWS[0]])


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (pa.int8(), "TINYINT"), (pa.int16(), "SMALLINT"), (pa.int64(), "BIGINT"), (pa.uint8(), "SMALLINT"),
        (pa.uint16(), "INT"), (pa.uint32(), "BIGINT"), (pa.uint64(), "DECIMAL(20, 0)"), (pa.float64(), "DOUBLE"),
        (pa.large_string(), "STRING"), (pa.string_view(), "STRING"), (pa.date64(), "DATE"),
        (pa.timestamp("s"), "TIMESTAMP"),
    ],
)  # fmt: skip
def test_each_arrow_column_type_becomes_the_expected_sql_type(kind: pa.DataType, wanted: str) -> None:
    db = fv.Database()
    db.create_table("t", pa.table({"x": pa.nulls(2, kind)}))
    assert types_of(db, "t") == [wanted] and list(db.table("t")) == [(None,), (None,)]


def test_a_table_made_from_a_frame_keeps_column_names_and_nullability() -> None:
    db = fv.Database()
    schema = pa.schema([pa.field("a ` b", pa.int64(), False), pa.field("select", pa.int64())])
    db.create_table("my `t", pa.table({"a ` b": [1], "select": [2]}, schema=schema), key=["a ` b", "select"])
    assert db.table("my `t").schema.names == ["a ` b", "select"]
    assert not db.table("my `t").schema.field(0).nullable


@pytest.mark.parametrize(
    ("frame", "key", "message"),
    [
        ([(1,)], (), "table t: a pandas or polars DataFrame, .* is expected, not list; for other rows"),
        ({"a": [1]}, (), "not dict"),
        (5, (), "not int"),
        (pl.LazyFrame({"a": [1]}), (), "not LazyFrame"),
        (pa.table({"a": [[1]]}), (), "column a: values of the type list<.*> have no SQL type"),
        (pa.table({"a": [None]}), (), "table t, column a: only NULLs have no SQL type"),
        (pa.table({}), (), "table t: the frame has no columns"),
        (pa.table({"a": [1]}), "b", "table t: the key names b, which is no column; the columns are a"),
        (pa.table({"a": [1]}), 5, r"Database.create_table\(key\): a list of texts is expected"),
        (pa.table({"a": [1, 1]}), "a", r"table t, row 1, column a: PRIMARY KEY \(a\) would have row \(1,\) twice"),
        (pa.table({"a": [1, None]}), "a", "table t, row 1, column a: NULL in a column declared NOT NULL"),
        (pa.table({"a": [1], "A": [2]}), (), "table t: columns a and A have the same name; rename one"),
        (pl.Series("a", [1]), (), "table t: rows are given as Series: a column, not a table"),
    ],
)
def test_a_frame_that_cannot_become_a_table_leaves_the_database_unchanged(frame: Any, key: Any, message: str) -> None:
    db = fv.Database()
    with pytest.raises(fv.FreshviewsError, match=message):
        db.create_table("t", frame, key)
    assert db.tables == () and db.version == 0
    db.create_table("t", pa.table({"a": [1]}))
    with pytest.raises(fv.CatalogError, match=r"^table T exists already"):
        db.create_table("T", pa.table({"a": [2]}))
    assert list(db.table("t")) == [(1,)]


def test_a_durable_database_keeps_a_table_made_from_a_frame(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "shop") as db:
        with pytest.raises(fv.BatchError):
            db.create_table("goods", pa.table({"id": [1, 1]}), key="id")
        db.create_table("goods", FRAME, key="id")
    with fv.Database(tmp_path / "shop") as db:
        assert sorted(db.table("goods")) == ROWS and types_of(db, "goods") == TYPES
        db.snapshot()
    with fv.Database(tmp_path / "shop") as db:
        assert sorted(db.table("goods")) == ROWS


TEXTS: list[tuple[str, dt.date | str, dt.datetime | str]] = [
    ("2026-01-31", dt.date(2026, 1, 31), dt.datetime(2026, 1, 31)),
    (" 2026-1-3 ", dt.date(2026, 1, 3), dt.datetime(2026, 1, 3)),
    ("2026-01-31T00:00", dt.date(2026, 1, 31), dt.datetime(2026, 1, 31)),
    ("2026-01-31 10:00:00.25", "the value has a time of day", dt.datetime(2026, 1, 31, 10, 0, 0, 250_000)),
    ("2026-01-31T10:00:00+02:00", "the value has a time of day", dt.datetime(2026, 1, 31, 8)),
    ("2026-01-31 10:00:00.1234567", "the value has a time of day", "the value is finer than microseconds"),
    ("2026-02-30", "the value is not a date; yyyy-MM-dd is", "the value is not a timestamp; yyyy-MM-dd HH:mm:ss"),
    ("", "the value is not a date", "the value is not a timestamp"),
]


@pytest.mark.parametrize(("text", "day", "at"), TEXTS, ids=[text for text, _, _ in TEXTS])
def test_text_is_read_as_a_date_and_a_timestamp(text: str, day: dt.date | str, at: dt.datetime | str) -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (day DATE, at TIMESTAMP)")
    for name, wanted in (("day", day), ("at", at)):
        for rows in (
            [{}, {name: text}],
            [(None, None), (text, None) if name == "day" else (None, text)],
            pa.table({name: [None, text]}),
            pa.table({name: pa.chunked_array([[None], [text]], pa.string()).dictionary_encode()}),
            pl.DataFrame({name: [None, text]}),
            pd.DataFrame({name: [None, text]}),
        ):
            if isinstance(wanted, str):
                with pytest.raises(fv.BatchError, match=wanted) as refused:
                    db.insert("t", rows)
                assert (refused.value.row, refused.value.column, refused.value.value) == (1, name, text)
            else:
                db.insert("t", rows)
                db.delete("t", [(None, None)])
                assert db.table("t").to_arrow()[name].to_pylist() == [wanted]
                db.delete("t", [{name: text}])


def test_a_date_column_that_is_not_null_accepts_text_and_refuses_null() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (day DATE NOT NULL)")
    db.insert("t", pa.table({"day": ["2026-01-31"]}))
    with pytest.raises(fv.BatchError, match="table t, row 1, column day: NULL in a column declared NOT NULL"):
        db.insert("t", pa.table({"day": ["2026-01-31", None]}))
    assert list(db.table("t")) == [(dt.date(2026, 1, 31),)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pl.Series("a", [1]), "rows are given as Series: a column, not a table; give a frame"),
        (pl.LazyFrame({"a": [1]}), r"rows are given as LazyFrame; call collect\(\) on it"),
        ((1, "x"), r"one row is given as a tuple, not in a list: write \[\(1, 'x'\)\]"),
        (pl.DataFrame({"a": [[1]], "b": ["x"]}), "column a: .*: INT accepts a column of integers"),
        (pl.DataFrame({"a": [1], "c": ["x"]}), "there is no column c; the columns are a, b"),
    ],
)
def test_the_error_of_an_insert_in_a_wrong_form_says_which_form_is_accepted(rows: Any, message: str) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a INT, b STRING)")
        with pytest.raises(fv.BatchError, match=f"table t.* {message}"):
            db.insert("t", rows)


def test_a_pandas_column_without_values_fits_every_type() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a INT, b STRING)")
        db.insert("t", pd.DataFrame({"a": [1, 2], "b": [np.nan, np.nan]}))
        db.insert("t", pd.DataFrame({"a": [], "b": []}))
        db.insert("t", np.array([(3, "x")], [("a", "i8"), ("b", "U1")]))
        db.insert("t", pd.DataFrame({"a": [4], "b": pd.Categorical(["y"])}))
        assert list(db.table("t")) == [(1, None), (2, None), (3, "x"), (4, "y")]
        db.create_table("n", pd.DataFrame({"x": [np.nan]}))
        assert db.table("n").schema.types == [pa.float64()]


def test_an_answer_becomes_a_table_with_the_types_of_spark() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (a INT NOT NULL, d DECIMAL(10, 2), at TIMESTAMP, s STRING)")
        db.insert("t", [(1, Decimal("1.50"), "2026-01-31 00:00:00", "x"), (2, None, None, None)])
        db.create_table("u", db.sql("SELECT a, d * 2 AS d, at, s, COUNT(*) OVER () AS n FROM t ORDER BY a"), key="a")
        assert db.table("u")[1] == (1, Decimal("3.00"), dt.datetime(2026, 1, 31), "x", 2)
        types = [column.type for column in db.table("u").schema]
        assert types[:3] == [pa.int32(), pa.decimal128(12, 2), pa.timestamp("us")]
        with pytest.raises(fv.ArgumentError, match="table v: columns a and a have the same name"):
            db.create_table("v", db.sql("SELECT a, a FROM t"))
