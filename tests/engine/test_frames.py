"""Views, tables and changes are read by polars, DuckDB, pyarrow and pandas."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import duckdb
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
def test_libraries_read_tables_and_views_by_the_arrow_interface(db: fv.Database, name: str) -> None:
    rows: fv.Table | fv.View = db.table(name) if name in db.tables else db.view(name)
    arrow = rows.to_arrow()
    assert pa.table(rows).equals(arrow) and pa.schema(rows) == arrow.schema
    assert pl.DataFrame(rows).equals(pl.from_arrow(arrow))
    assert sorted(duckdb.sql("SELECT * FROM rows").fetchall(), key=str) == sorted(rows, key=str)
    assert duckdb.sql("SELECT COUNT(*) FROM rows").fetchall() == [(len(rows),)]


def test_a_change_is_a_frame_with_multiplicities(db: fv.Database) -> None:
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


def test_a_change_of_one_view_is_applied_to_a_table(db: fv.Database) -> None:
    db.execute("CREATE TABLE copy (part STRING, qty BIGINT, n BIGINT)")
    db.insert("copy", db.view("by_part"))
    changes: list[fv.Change] = []
    db.view("by_part").subscribe(changes.append)
    db.insert("items", [(1, "bolt", 4), (1, "screw", 4)])
    db.apply("copy", changes[0])
    assert sorted(db.table("copy")) == sorted(db.view("by_part"))


def test_pandas_names_the_columns_of_a_view_by_its_rows(db: fv.Database) -> None:
    view = db.view("by_part")
    frame = pd.DataFrame(view)
    assert [*frame.columns] == ["part", "qty", "n"] and len(frame) == len(view)
    assert [*pd.DataFrame(db.table("items")).columns] == ["o_id", "part", "qty"]


def test_the_first_row_is_equal_to_a_plain_tuple_and_pickled_as_one(db: fv.Database) -> None:
    rows = [*db.view("by_part")]
    assert repr(rows[:1]) == "[('bolt', 6, 2)]"
    assert type(pickle.loads(pickle.dumps(rows[0]))) is tuple
    db.execute("CREATE TABLE copy (part STRING, qty BIGINT, n BIGINT)")
    db.insert("copy", rows[:1])
    db.insert("copy", rows)
    assert sorted(db.table("copy")) == sorted([*rows, rows[0]])


def test_head_reads_the_first_rows_in_the_order_of_the_view(db: fv.Database) -> None:
    db.execute("CREATE MATERIALIZED VIEW sorted AS SELECT part, qty FROM by_part ORDER BY qty DESC")
    view = db.view("sorted")
    assert view.head(2).to_pylist() == view.to_arrow().to_pylist()[:2] != []
    assert view.head(0).num_rows == 0 and view.head(0).schema == view.schema
    assert view.head().num_rows == len(view) and db.table("orders").head(1).num_rows == 1
    for wrong in (-1, 1.0, True, None):
        with pytest.raises(fv.ArgumentError, match=r"head\(n\): a whole number, 0 or more, is expected, not"):
            view.head(wrong)  # type: ignore[arg-type]


def test_head_repeats_a_row_by_its_multiplicity(db: fv.Database) -> None:
    assert db.table("items").head(2).num_rows == 2


def test_a_frame_of_a_view_that_cannot_be_read_raises_the_error_of_the_view(db: fv.Database) -> None:
    view = db.view("by_part")
    db.close()
    for read in (pl.DataFrame, pa.table):
        with pytest.raises(fv.FreshviewsError, match="the database is closed"):
            read(view)


def test_duckdb_reads_a_view_while_the_version_is_held(db: fv.Database) -> None:
    view = db.view("by_part")
    with db.at_one_version():
        assert duckdb.sql("SELECT SUM(qty) FROM view").fetchall() == [(sum(row[1] for row in view),)]
