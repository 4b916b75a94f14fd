"""VARCHAR(n) accepts strings of at most n characters on every way in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews.catalog.definitions import TableDef
from freshviews.sql import Catalog, parse_script
from freshviews.stream import AppendOnly, signed_rows

SHORT, LONG = "é☃€", "é☃€x"
"""Three and four characters; both have more than four bytes."""


@pytest.fixture(params=["stored", "trusted"])
def db(request: pytest.FixtureRequest) -> fv.Database:
    trusted = "TBLPROPERTIES ('freshviews.trusted' = 'true')" if request.param == "trusted" else ""
    found = fv.Database()
    found.execute(
        f"CREATE TABLE t (a INT, b VARCHAR(3), c VARCHAR) {trusted}; "
        "CREATE MATERIALIZED VIEW v AS SELECT b, COUNT(*) AS n, MIN(c) AS c FROM t GROUP BY b"
    )
    return found


def column(values: list[str | None], kind: pa.DataType) -> pa.Table:
    many = len(values)
    return pa.table({"a": list(range(many)), "b": pa.array(values, kind), "c": ["long enough"] * many})


SHAPES: dict[str, Any] = {
    "tuples": lambda values: [(1, value, "long enough") for value in values],
    "dicts": lambda values: [{"a": 1, "b": value, "c": "long enough"} for value in values],
    "string": lambda values: column(values, pa.string()),
    "large string": lambda values: column(values, pa.large_string()),
    "string view": lambda values: column(values, pa.string_view()),
    "dictionary": lambda values: column(values, pa.dictionary(pa.int32(), pa.string())),
    "chunks": lambda values: pa.concat_tables([column([value], pa.string()) for value in values]),
    "record batch": lambda values: column(values, pa.string()).to_batches()[0],
    "another column is converted": lambda values: column(values, pa.string()).set_column(
        0, "a", pa.array([1] * len(values)).dictionary_encode()
    ),
}


@pytest.mark.plain_python(only=True)
@pytest.mark.parametrize("shape", list(SHAPES))
def test_a_batch_with_a_string_that_is_too_long_is_refused(db: fv.Database, shape: str) -> None:
    made = SHAPES[shape]
    db.insert("t", made([SHORT, None]))
    assert set(db.view("v")) == {(None, 1, "long enough"), (SHORT, 1, "long enough")}
    with pytest.raises(fv.BatchError) as found:
        db.insert("t", made([None, LONG, SHORT]))
    assert str(found.value) == f"table t, row 1, column b: '{LONG}': VARCHAR(3) accepts 3 characters, not 4"
    assert (found.value.row, found.value.column, found.value.rule) == (1, "b", "VARCHAR(3)")
    assert len(list(db.view("v"))) == 2
    db.delete("t", made([SHORT, None]))
    assert list(db.view("v")) == []


@pytest.mark.plain_python(only=True)
def test_the_length_of_a_string_in_a_single_row_is_checked(db: fv.Database) -> None:
    with pytest.raises(fv.BatchError, match=r"VARCHAR\(3\) accepts 3 characters, not 4"):
        db.insert("t", [(1, LONG, None)])


@pytest.mark.plain_python(only=True)
def test_rows_of_a_stream_with_a_long_text_are_set_aside() -> None:
    (table,) = parse_script("CREATE TABLE t (a INT, b VARCHAR(3))", Catalog())
    assert isinstance(table, TableDef)
    batch = pa.table({"a": [1, 2, 3], "b": [SHORT, LONG, None]})
    found = signed_rows(batch, table, AppendOnly(), set_aside=True)
    assert found.rows.column("b").to_pylist() == [SHORT, None]
    assert [(row["column"], row["reason"]) for row in found.bad.to_pylist()] == [
        ("b", "VARCHAR(3) accepts 3 characters, not 4")
    ]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE TABLE t (a VARCHAR(0))", "VARCHAR(0) is not a type; the length of a VARCHAR is one number, 1 to"),
        ("CREATE TABLE t (a VARCHAR(1, 2))", "VARCHAR(1, 2) is not a type"),
        ("CREATE TABLE t (a CHAR(3))", "type CHAR(3) is not supported; accepted: BOOLEAN"),
    ],
)
def test_invalid_lengths_of_varchar_are_refused(sql: str, message: str) -> None:
    with pytest.raises(fv.SqlError) as found:
        fv.Database().execute(sql)
    assert message in str(found.value)
