"""Strings of a trusted table that views pass only to text functions are not stored, and the views stay the same."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv

pytestmark = pytest.mark.plain_python

TRUSTED = "TBLPROPERTIES ('freshviews.trusted' = 'true')"
VIEWS = """
CREATE MATERIALIZED VIEW special AS SELECT COUNT(*) AS n FROM t WHERE note LIKE '%special%request_%';
CREATE MATERIALIZED VIEW heads AS SELECT substring(note, 1, 2) AS head, COUNT(*) AS n FROM t GROUP BY ALL;
CREATE MATERIALIZED VIEW tails AS
    SELECT right(note, 1) AS tail, SUM(length(note)) AS s FROM t WHERE substring(note, 1, 2) <> 'ä ' GROUP BY ALL;
"""
SPECIAL = "special requests"
NOTES = ["a special blue requesta", SPECIAL, None, "ä special request", "", "ä 日本", "a" * 40, SPECIAL]


def database(properties: str, views: str = VIEWS) -> fv.Database:
    db = fv.Database()
    db.execute(f"CREATE TABLE t (id BIGINT, note STRING) {properties}; {views}")
    return db


def contents(db: fv.Database) -> dict[str, list[Any]]:
    return {name: sorted(db.view(name), key=repr) for name in db.views}


def shapes() -> dict[str, Any]:
    table = pa.table({"id": range(len(NOTES)), "note": NOTES})

    def as_type(kind: pa.DataType) -> pa.Table:
        return table.set_column(1, "note", table["note"].cast(kind))

    return {
        "rows": list(enumerate(NOTES)),
        "dicts": [{"id": i, "note": note} for i, note in enumerate(NOTES)],
        "string": table,
        "large": as_type(pa.large_string()),
        "view": as_type(pa.string_view()),
        "dictionary": table.set_column(1, "note", table["note"].dictionary_encode()),
        "chunks": pa.concat_tables([table.slice(0, 3), table.slice(3)]),
        "slice": pa.table({"id": [9, *range(len(NOTES))], "note": [SPECIAL, *NOTES]}).slice(1).to_batches()[0],
    }


@pytest.mark.parametrize("shape", shapes())
def test_views_over_text_functions_agree_with_stored_strings(shape: str) -> None:
    with database("") as stored, database(TRUSTED) as trusted:
        for db in (stored, trusted):
            db.insert("t", shapes()[shape])
            db.delete("t", [(0, NOTES[0])])
        assert contents(trusted) == contents(stored)
        assert contents(trusted)["special"] == [(2,)]
        with trusted.batch() as batch:  # encodes every column
            batch.insert("t", [(0, NOTES[0])])
        stored.insert("t", [(0, NOTES[0])])
        assert contents(trusted) == contents(stored)
        known = [trusted._dictionary.find(note) for note in (SPECIAL, "ä special request")]
        assert known == [None, None]


def test_strings_that_a_view_reads_are_stored() -> None:
    with database(TRUSTED, VIEWS + "CREATE MATERIALIZED VIEW all_of AS SELECT note FROM t;") as db:
        for rows in shapes().values():
            db.insert("t", rows)
        assert db.view("special").to_arrow()["n"].to_pylist() == [3 * len(shapes())]
        assert sorted(db.view("all_of"), key=repr) == sorted([(note,) for note in NOTES] * len(shapes()), key=repr)


def test_a_text_column_that_is_missing_from_the_rows_is_null() -> None:
    with database(TRUSTED) as db:
        for rows in (pa.table({"id": [1, 2]}), pa.table({"id": [1], "note": pa.nulls(1)}), [{"id": 3}]):
            db.insert("t", rows)
        assert contents(db) == {"special": [(0,)], "heads": [(None, 4)], "tails": []}


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([(1, 7)], "row 0, column note: 7: STRING accepts str, not int"),
        ([(1, "a"), (2, "\ud800")], "row 1, column note: .* the text is not valid Unicode"),
        (pa.table({"id": [1], "note": pa.array([b"\xff"]).view(pa.string())}), "column note: .* not valid UTF-8"),
        (pa.table({"id": [1], "note": [5]}), "column note: 'int64': STRING accepts a column of strings"),
    ],
    ids=("int", "surrogate", "utf-8", "type"),
)
def test_strings_that_are_not_stored_are_still_checked(rows: Any, error: str) -> None:
    with database(TRUSTED) as db:
        with pytest.raises(fv.BatchError, match=error):
            db.insert("t", rows)
        assert contents(db)["heads"] == []


BELOW = """
CREATE TABLE u (k BIGINT, name STRING, x BIGINT) {properties};
CREATE MATERIALIZED VIEW above AS
    SELECT left(name, 1) AS head, COUNT(*) AS n FROM u WHERE x > (SELECT MIN(x) FROM u)
    AND NOT EXISTS (SELECT * FROM t WHERE t.id = u.k) GROUP BY left(name, 1);
CREATE MATERIALIZED VIEW beside AS
    SELECT t.id, length(u.name) AS n
    FROM t LEFT JOIN (u JOIN t o ON o.id = u.x) ON u.k = t.id AND startswith(u.name, 'b');
CREATE MATERIALIZED VIEW both AS
    SELECT left(name, 1) AS head, right(name, 1) AS tail FROM u WHERE x > (SELECT MIN(x) FROM u);
"""


def test_internal_views_store_only_the_read_part_of_a_text() -> None:
    rows = [(7, "abc", 1), (8, "bcd", 3), (1, "bcd", 9), (9, None, 8), (10, "a", 9)]
    found = []
    for properties in ("", TRUSTED):
        with database(properties, BELOW.format(properties=properties)) as db:
            db.insert("u", rows)
            db.insert("t", [(1, "a"), (3, "b"), (9, "c")])
            db.delete("u", [(10, "a", 9)])
            found.append(contents(db))
            read = {c.name for view in db._relations.views.values() for c in view.definition.columns}
            assert {"name_part", "name"} <= read, "both parts of one column are read of the column"
    assert found[0] == found[1]
    assert found[0]["above"] == [("b", 1)]
    assert found[0]["both"] == [("b", "d"), ("b", "d"), (None, None)]
    assert found[0]["beside"] == [(1, 3), (3, None), (9, None)]
