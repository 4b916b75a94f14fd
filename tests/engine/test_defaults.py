"""DEFAULT: the value of a column in rows that lack it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import freshviews as fv

COLUMNS = """id INT NOT NULL, name STRING NOT NULL DEFAULT 'new', price DECIMAL(8, 2) DEFAULT 3 / 2,
    day DATE DEFAULT DATE '2026-01-31' + INTERVAL '1' MONTH, x DOUBLE DEFAULT 0.1, b BOOLEAN DEFAULT TRUE,
    at TIMESTAMP DEFAULT '2026-01-02 03:04:05.000006', old DATE DEFAULT '0001-01-01', other STRING DEFAULT NULL"""
DEFAULTS = (
    "new",
    Decimal("1.50"),
    dt.date(2026, 2, 28),
    0.1,
    True,
    dt.datetime(2026, 1, 2, 3, 4, 5, 6),
    dt.date(1, 1, 1),
    None,
)
SHAPES: dict[str, Callable[[], Any]] = {
    "dicts": lambda: [{"id": 1}, {"ID": 2}],
    "generator": lambda: ({"id": i} for i in (1, 2)),
    "table": lambda: pa.table({"id": [1, 2]}),
    "small record batch": lambda: pa.record_batch({"id": pa.array([1, 2], pa.int32())}),
    "converted": lambda: pa.table({"id": pa.array([1, 2], pa.uint64())}),
    "pandas": lambda: pd.DataFrame({"id": [1, 2]}),
    "polars": lambda: pl.DataFrame({"id": [1, 2]}),
}


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_without_a_column_get_the_default_of_the_column(shape: str, trusted: bool) -> None:
    db = fv.Database()
    db.execute(
        f"CREATE TABLE t ({COLUMNS}) TBLPROPERTIES ('freshviews.trusted' = '{str(trusted).lower()}');"
        "CREATE MATERIALIZED VIEW v AS SELECT * FROM t;"
        "CREATE MATERIALIZED VIEW texts AS "
        "SELECT LENGTH(name) AS n, COUNT(*) AS c FROM t WHERE name LIKE 'n%' GROUP BY LENGTH(name)"
    )
    db.insert("t", SHAPES[shape]())
    assert Counter(db.view("v")) == Counter([(1, *DEFAULTS), (2, *DEFAULTS)])
    assert list(db.view("texts")) == [(3, 2)]
    # A row is deleted as it was inserted.
    db.delete("t", SHAPES[shape]())
    assert list(db.view("v")) == list(db.view("texts")) == []


def test_text_functions_are_computed_for_default_values_in_trusted_tables() -> None:
    db = fv.Database()
    db.execute(
        "CREATE TABLE t (id INT, name STRING DEFAULT 'new') TBLPROPERTIES ('freshviews.trusted' = 'true');"
        "CREATE MATERIALIZED VIEW v AS SELECT LENGTH(name) AS n, COUNT(*) AS c FROM t GROUP BY LENGTH(name)"
    )
    db.insert("t", pa.table({"id": [1, 2]}))
    db.insert("t", [{"id": 3}, {"id": 4, "name": None}])
    assert Counter(db.view("v")) == Counter([(3, 3), (None, 1)])


def test_a_given_null_stays_null() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (id INT, a INT DEFAULT 7, s STRING NOT NULL DEFAULT 'x')")
    db.insert("t", [{"id": 1, "a": None}, {"id": 2}])
    db.insert("t", pa.table({"id": [3], "a": pa.array([None], pa.int64())}))
    db.apply("t", [{"id": 4, "_multiplicity": 2}, {"id": 2, "_multiplicity": -1}])
    db.apply("t", pa.table({"id": [5], "_multiplicity": [1]}))
    with db.batch() as batch:
        batch.insert("t", [{"id": 6}])
    expected = [(1, None, "x"), (3, None, "x"), (4, 7, "x"), (4, 7, "x"), (5, 7, "x"), (6, 7, "x")]
    assert Counter(db.table("t")) == Counter(expected)
    with pytest.raises(fv.BatchError, match="row 0, column s: NULL in a column declared NOT NULL"):
        db.insert("t", [{"id": 1, "s": None}])


def test_a_not_null_column_without_a_default_is_required() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (id INT NOT NULL, a INT)")
    with pytest.raises(fv.BatchError, match="NOT NULL column id is not given, and has no DEFAULT"):
        db.insert("t", pa.table({"a": [1]}))


def test_defaults_survive_a_reopen_and_collections_of_strings(tmp_path: Path) -> None:
    with fv.Database(tmp_path / "db") as db:
        db.execute("CREATE TABLE t (id INT, s STRING DEFAULT 'kept')")
        db.insert("t", [{"id": 1}])
        db.snapshot()
    with fv.Database(tmp_path / "db") as db:
        db.delete("t", [{"id": 1}])
        for i in range(3):  # Meanwhile unused strings are freed.
            rows = [(n, f"{i} {n}") for n in range(6000)]
            db.insert("t", rows)
            db.delete("t", rows)
        db.insert("t", [{"id": 2}])
        assert list(db.table("t")) == [(2, "kept")]
