"""Accepted shapes of rows, and the errors for others."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import freshviews as fv

ROWS = [(1, "a", Decimal("1.50"), dt.date(2026, 1, 2)), (2, None, None, None)]


@pytest.fixture(scope="module", params=["stored", "trusted"])
def db(request: pytest.FixtureRequest) -> fv.Database:
    db = fv.Database()
    trusted = "TBLPROPERTIES ('freshviews.trusted' = 'true')" if request.param == "trusted" else ""
    db.execute(
        f"CREATE TABLE t (id INT NOT NULL, name STRING, price DECIMAL(8, 2), day DATE) {trusted};"
        "CREATE MATERIALIZED VIEW v AS SELECT id, name, price, day FROM t"
    )
    return db


def arrow() -> pa.Table:
    return pa.table(
        {
            "ID": pa.array([1, 2]),
            "day": [ROWS[0][3], None],
            "name": ["a", None],
            "price": pa.array([Decimal("1.5"), None]),
        }
    )


def shapes() -> dict[str, Any]:
    table = arrow()
    names = ("id", "name", "price", "day")
    return {
        "tuples": ROWS,
        "lists": [list(row) for row in ROWS],
        "generator": (row for row in ROWS),
        "dicts": [dict(zip(names, ROWS[0], strict=True)), {"ID": 2}],
        "mixed": [ROWS[0], {"id": 2}],
        "table": table,
        "record batch": table.to_batches()[0],
        "reader": table.to_reader(max_chunksize=1),
        "chunked": pa.concat_tables([table.slice(0, 1), table.slice(1, 1)]),
        "pandas": pd.DataFrame(ROWS, columns=list(names)),
        "polars": pl.from_arrow(table),
        "dictionary strings": table.set_column(2, "name", table["name"].dictionary_encode()),
    }


@pytest.mark.parametrize("shape", list(shapes()))
def test_rows_inserted_in_any_form_can_be_deleted_as_tuples(db: fv.Database, shape: str) -> None:
    db.insert("t", shapes()[shape])
    assert Counter(db.view("v")) == Counter(ROWS)
    db.delete("t", ROWS)
    assert list(db.view("v")) == []


@pytest.mark.parametrize("shape", ["tuples", "dicts", "table"])
def test_apply_accepts_signed_multiplicities_and_ignores_zero(db: fv.Database, shape: str) -> None:
    counts = [2, 0]
    given = {
        "tuples": [(*row, m) for row, m in zip(ROWS, counts, strict=True)],
        "dicts": [
            {"id": 1, "name": "a", "price": Decimal("1.5"), "day": ROWS[0][3], "_multiplicity": 2},
            {"id": 9, "_multiplicity": 0},
        ],
        "table": arrow().append_column("_multiplicity", pa.array(counts)),
    }[shape]
    db.apply("t", given)
    assert list(db.view("v")) == [ROWS[0]] * 2
    db.apply("t", [(*ROWS[0], -2)])
    assert len(db.view("v")) == 0


REFUSED: list[tuple[Any, int | None, str | None, str]] = [
    ([(1, "a")], 0, None, "has 4 values"),
    ([ROWS[0], (1, 2, None, None)], 1, "name", "STRING accepts str"),
    ([ROWS[0], (None, "a", None, None)], 1, "id", "NOT NULL"),
    ([(2**31, None, None, None)], 0, "id", "INT accepts"),
    ([{"id": 1, "nmae": "a"}], 0, "nmae", "there is no column nmae"),
    ([{"name": "a"}], 0, "id", "NOT NULL"),
    ([(1, None, Decimal("1.234"), None)], 0, "price", "digits after the point"),
    ([1], 0, None, "a tuple, a list, a dict, or a dataclass"),
    ("rows", None, None, "given as str"),
    (7, None, None, "given as int"),
    (pa.table({"id": [1, None]}), 1, "id", "NOT NULL"),
    (pa.table({"id": [1, 2**40]}), 1, "id", "INT accepts"),
    (pa.table({"id": [1], "x": [1]}), None, "x", "there is no column x"),
    (pa.table({"name": ["a"]}), None, "id", "not given"),
    (pa.table({"id": ["a"]}), None, "id", "integers"),
    (pa.table({"id": [1], "_multiplicity": [1]}), None, "_multiplicity", "apply takes multiplicities"),
    (pa.table([[1], [2]], names=["id", "ID"]), None, "ID", "twice"),
    ([ROWS[0], {"id": 1, "name": "a", "ID": 2}], 1, "ID", "twice"),
    (pa.table({"id": [1, 2]}).select([]), None, None, "2 rows have no column of the table"),
    (pd.DataFrame({"id": [1, 2, "x", 3]}), 2, "id", "'x': the values of a column have one type"),
    (pd.DataFrame({"id": [1], "name": [object()]}), 0, "name", "Arrow has no type for it"),
    (pd.DataFrame([[1, 2]], columns=["id", "id"]), None, None, "Duplicate column names"),
    ([(10**5000, None, None, None)], 0, "id", "cannot be shown: INT accepts"),
    ([(1, None, None, "x" * 5000)], 0, "day", r"x\.\.\. \(5002 characters\): the value is not a date"),
]


@pytest.mark.parametrize("given", REFUSED, ids=lambda given: given[3])
def test_the_error_of_a_refused_row_names_table_row_column_and_rule(
    db: fv.Database, given: tuple[Any, int | None, str | None, str]
) -> None:
    rows, row, column, words = given
    version = db.version
    with pytest.raises(fv.BatchError, match=words) as caught:
        db.insert("t", rows)
    assert (caught.value.table, caught.value.row, caught.value.column) == ("t", row, column)
    assert caught.value.rule
    assert db.version == version and list(db.view("v")) == []


@pytest.mark.parametrize("rows", [[(*ROWS[0], None)], [(*ROWS[0], True)], [ROWS[0]], arrow()])
def test_apply_refuses_missing_and_non_integer_multiplicities(db: fv.Database, rows: Any) -> None:
    with pytest.raises(fv.BatchError, match="_multiplicity"):
        db.apply("t", rows)


def test_row_numbers_in_errors_count_rows_with_multiplicity_zero() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE k (a INT PRIMARY KEY)")
    with pytest.raises(fv.BatchError) as caught:
        db.apply("k", [(1, 1), (5, 0), (6, 0), (1, 1)])
    assert caught.value.row == 3


def test_apply_refuses_rows_that_have_only_a_multiplicity(db: fv.Database) -> None:
    with pytest.raises(fv.BatchError, match="no column of the table"):
        db.apply("t", pa.table({"_multiplicity": [1, 1]}))
    db.insert("t", pa.table({}))
    assert list(db.view("v")) == []


def test_pandas_floats_with_missing_values_are_accepted_for_integer_columns() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE k (a INT, b INT)")
    db.insert("k", pd.DataFrame({"a": [1, 2], "b": [3, None]}))
    assert Counter(db.table("k")) == Counter([(1, 3), (2, None)])


@pytest.mark.parametrize("rows", [1, 10])
def test_dates_past_year_9999_can_be_read_and_deleted(rows: int) -> None:
    db = fv.Database()
    db.execute("CREATE TABLE far (at TIMESTAMP, day DATE)")
    columns = [pa.array([253_402_300_800_000_000] * rows, pa.timestamp("us")), pa.array([2_932_897] * rows, pa.int32())]
    given = pa.table([columns[0], columns[1].cast(pa.date32())], names=["at", "day"])
    db.insert("far", given)
    far = db.table("far")
    assert list(far) == [(np.datetime64("10000-01-01T00:00:00.000000"), np.datetime64("10000-01-01"))] * rows
    assert far.to_arrow().equals(given) and far.to_polars().height == rows
    assert far.to_pandas()["day"].dt.year.tolist() == [10000] * rows
    db.delete("far", list(far))
    assert len(far) == 0


def test_strings_of_unread_columns_stay_out_of_the_dictionary() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (a INT, s STRING, u STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT s, COUNT(*) AS n FROM t GROUP BY s"
    )
    db.insert("t", [(1, "kept", "lost"), (2, "kept", "gone")])
    db.insert("t", pa.table({"s": ["also"], "u": ["no"]}))
    assert db.stats()["strings"] == 2
    with pytest.raises(fv.BatchError, match="column u"):
        db.insert("t", [(1, "kept", 5)])
