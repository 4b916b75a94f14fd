"""Pipes, PIVOT, UNPIVOT and other forms of Spark's SQL have the rows of Spark, in views and in SELECTs."""

from __future__ import annotations

from typing import Any

import pytest

from freshviews import Database
from freshviews.errors import SqlError
from tests.sql.forms import FORMS, TABLES
from tests.sql.meanings import comparable

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]


def _database() -> Database:
    database = Database()
    for table, (columns, _) in TABLES.items():
        database.execute(f"CREATE TABLE {table} ({columns})")
    return database


def _insert(database: Database) -> None:
    for table, (_, rows) in TABLES.items():
        database.insert(table, rows)


@pytest.mark.parametrize("query", FORMS)
def test_a_view_of_each_query_form_returns_the_same_rows_as_spark(query: str) -> None:
    with _database() as database:
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        _insert(database)
        assert comparable(database.view("v")) == comparable(FORMS[query])


@pytest.fixture(scope="module")
def filled() -> Any:
    with _database() as database:
        _insert(database)
        yield database


@pytest.mark.parametrize("query", FORMS)
def test_a_select_of_each_query_form_returns_the_same_rows_as_spark(query: str, filled: Database) -> None:
    assert comparable(filled.sql(query)) == comparable(FORMS[query])


@pytest.mark.parametrize("query", ["FROM r SELECT a", "TABLE s", "FROM r |> SELECT a AS x, b AS as"])
@pytest.mark.parametrize("head", ["v", "v COMMENT 'all'", "v TBLPROPERTIES ('freshviews.strategy' = 'recompute')"])
def test_a_create_view_statement_may_have_a_query_that_begins_with_from(head: str, query: str) -> None:
    with _database() as database:
        database.execute(f"CREATE MATERIALIZED VIEW {head} AS {query}")
        database.execute(f"CREATE VIEW as AS {query}")
        _insert(database)
        assert comparable(database.view("v")) == comparable(database.sql("SELECT * FROM `as`"))


OWN = {
    "SELECT a, b FROM r WHERE a = 1 UNION ALL BY NAME SELECT d AS B, a FROM s WHERE a = 1": [
        *((1, 10), (1, 20), (1, 100)),
    ],
    "SELECT a FROM r UNION BY NAME SELECT d, a FROM s": [
        *((1, None), (1, 100), (2, None), (2, 200), (2, 300), (3, None), (4, 400), (None, None)),
    ],
    "(SELECT a FROM r EXCEPT SELECT a FROM s) UNION ALL BY NAME SELECT 7 AS e, COUNT(*) AS a FROM s": [
        *((3, None), (4, 7), (None, None)),
    ],
    "SELECT a, c FROM r ORDER BY c FETCH FIRST 1 ROW WITH TIES": [(1, "x"), (2, "x"), (None, "x")],
    "SELECT c, SUM(b) AS t FROM r GROUP BY c ORDER BY 2 DESC FETCH FIRST 1 ROW WITH TIES": [("x", 80)],
    "SELECT * REPLACE (a + 1 AS a) FROM s": [(2, 100), (3, 200), (3, 300), (5, 400)],
    "SELECT default.r.a FROM default.r JOIN spark_catalog.default.s ON r.a = s.a": [(1,), (1,), (2,), (2,)],
    "SELECT p.n FROM r PIVOT (SUM(b) FOR UPPER(c) IN ('X')) AS p(m, n)": [(10,), (30,), (40,), (None,)],
    "SELECT a, GROUPING(c) AS g, EXISTS (SELECT 1 FROM s WHERE s.a = r.a) AS e FROM r GROUP BY ROLLUP (a, c)": [
        *((1, 0, True), (1, 0, True), (1, 1, True), (2, 0, True), (2, 1, True), (3, 0, False), (3, 1, False)),
        *((None, 0, False), (None, 1, False), (None, 1, False)),
    ],
}
"""Forms that Spark lacks or answers with an internal error."""


@pytest.mark.parametrize("query", OWN)
def test_a_query_form_that_spark_does_not_support_returns_the_expected_rows(query: str, filled: Database) -> None:
    with _database() as database:
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        _insert(database)
        assert comparable(database.view("v")) == comparable(OWN[query]) == comparable(filled.sql(query))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("FROM r |>", "|> takes SELECT, EXTEND, SET"),
        ("FROM r |> TABLESAMPLE (10 PERCENT)", "|> takes SELECT, EXTEND, SET"),
        ("FROM r |> EXTEND", "something is missing after EXTEND"),
        ("FROM r |> AGGREGATE SUM(b) AS s GROUP BY ALL", "GROUP BY of |> AGGREGATE takes columns and expressions"),
        ("FROM r |> AGGREGATE SUM(b) AS s GROUP BY 4", "the columns before |> AGGREGATE have the numbers 1 to 3"),
        ("FROM r |> AGGREGATE SUM(b) AS s GROUP BY 1 AS k", "GROUP BY of |> AGGREGATE takes columns and expressions"),
        ("FROM r |> AGGREGATE SUM(b) AS s GROUP BY 1.5", "GROUP BY of |> AGGREGATE takes columns and expressions"),
        ("FROM r |> AGGREGATE b", "neither in GROUP BY nor inside an aggregate"),
        ("FROM r |> DROP zz", "unknown column zz"),
        ("FROM r |> SET zz = 1", "unknown column zz"),
        ("FROM r |> SELECT a |> WHERE c = 'x'", "unknown column c"),
        *(
            (query, "r.* after a pipe, PIVOT or UNPIVOT has only the columns of r; write *, or name the columns")
            for query in (
                "FROM r |> EXTEND b AS y |> WHERE y > 1 |> SELECT r.*",
                "FROM r |> SET b = b + 1 |> SELECT r.*",
                "FROM r |> SELECT a, b AS y |> SELECT r.* EXCEPT (a)",
                "FROM r |> AGGREGATE SUM(b) AS y GROUP BY a |> SELECT r.*",
                "FROM r |> EXTEND b AS y |> JOIN s ON r.a = s.a |> SELECT s.*, r.*",
                "FROM r |> PIVOT (SUM(b) FOR c IN ('x')) |> SELECT r.*",
                "SELECT r.* FROM r PIVOT (SUM(b) FOR c IN ('x'))",
                "SELECT r.* FROM r UNPIVOT (v FOR n IN (a, b))",
            )
        ),
        ("SELECT * FROM r PIVOT (SUM(b) FOR c IN (abs(-2)))", "a name is missing, as in FOR c IN"),
        ("SELECT * FROM r PIVOT (SUM(b) FOR (a, c) IN (1, 2))", "FOR has 2 columns"),
        ("SELECT * FROM r PIVOT (SUM(b))", "FOR is missing, as in PIVOT (SUM(b) FOR c IN ('x', 'y'))"),
        ("SELECT * FROM r PIVOT (a FOR c IN ('x'))", "neither in GROUP BY nor inside an aggregate"),
        ("SELECT * FROM r UNPIVOT ((v, w) FOR n IN (a, b))", "UNPIVOT has 2 columns of values"),
        ("SELECT * FROM r UNPIVOT (v FOR n IN (a, zz))", "unknown column zz"),
        ("SELECT a, a FROM r UNION BY NAME SELECT a FROM s", "column a is given twice"),
        ("SELECT a FROM r EXCEPT BY NAME SELECT a FROM s", "BY NAME is not supported"),
        ("SELECT * FROM range()", "range takes one to three whole numbers"),
        ("SELECT * FROM range(0, 3, 0)", "the step of range is 0"),
        ("SELECT * FROM range(100000)", "range has more than 10,000 rows"),
        ("SELECT * FROM range(2.5)", "range accepts only whole numbers"),
        ("SELECT (a, b) < (1, 2, 3) AS x FROM r", "a row of 2 values cannot be compared with a row of 3"),
        ("SELECT a FROM other.r", "other.r: write r; all tables are in the schema default"),
        ("SELECT a FROM r FETCH FIRST 2 ROWS WITH TIES", "WITH TIES needs an ORDER BY"),
        ("SELECT DISTINCT a FROM r ORDER BY a FETCH FIRST 2 ROWS WITH TIES", "WITH TIES and DISTINCT cannot be in one"),
        (
            "SELECT a, (WITH q AS (SELECT d FROM s WHERE s.a = r.a) SELECT COUNT(*) FROM s "
            "WHERE EXISTS (SELECT 1 FROM q WHERE q.d = s.d)) AS t FROM r",
            "q, which names columns of a query around its WITH, in a subquery is not supported",
        ),
    ],
)
def test_a_wrong_use_of_a_query_form_is_refused_with_its_place(query: str, message: str) -> None:
    with _database() as database, pytest.raises(SqlError) as caught:
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert message in str(caught.value) and caught.value.line == 1 and caught.value.column > 1


@pytest.mark.parametrize("query", ["SELECT * EXCEPT (zz) FROM r", "FROM r |> DROP zz", "FROM r |> SET zz = 1"])
def test_the_error_of_a_select_names_a_column_that_is_not_in_the_star(query: str, filled: Database) -> None:
    with pytest.raises(SqlError, match="unknown column zz") as caught:
        filled.sql(query)
    assert caught.value.column > 1


def test_a_pivot_into_too_many_columns_is_refused_before_it_is_expanded(filled: Database) -> None:
    terms, values = " + ".join(["b"] * 300), ", ".join(map(str, range(300)))
    message = (
        "PIVOT makes 300 columns with 275,100 names, constants and operations in all; at most 100,000 are accepted: "
        "give IN fewer values, or compute long expressions in a subquery, at 'PIVOT'"
    )
    query = f"SELECT * FROM r PIVOT (SUM({terms}) AS s FOR a IN ({values}))"
    for statement in (query, f"CREATE MATERIALIZED VIEW v AS {query}"):
        with pytest.raises(SqlError, match=message):
            filled.execute(statement)


def test_a_pipe_may_have_hundreds_of_unions(filled: Database) -> None:
    query = "FROM s |> SELECT a " + "|> UNION ALL SELECT 1 " * 400
    with _database() as database:
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query} |> AGGREGATE COUNT(*) AS n")
        _insert(database)
        assert list(database.view("v")) == filled.sql(f"{query} |> AGGREGATE COUNT(*) AS n").fetchall() == [(404,)]


OWN_NAMES = {
    "10L": "10", "2S": "2", "01": "1", "1.50BD": "1.50", "1e2BD": "100", ".5": "0.5", "5.": "5", "2.5F": "2.5",
    "1e3": "1000.0", "1.5E-7": "1.5E-7", "10D": "10.0", "-1": "-1", "-(1)": "-1", "+1": "1", "-1e1": "-10.0",
    "1 - 2": "-1", "2 * 3": "6", "CAST('1' AS INT)": "1", "CAST(1.50 AS DOUBLE)": "1.5",
    "CAST(1 AS DECIMAL(5, 2))": "1.00", "CAST(1 AS STRING)": "1", "NULL": "null",
}  # fmt: skip
"""Spark's names of the columns of PIVOT for constants of numbers."""
OF_TEXTS = {"'it''s'": "it's", "'a' || 'b'": "ab", "CAST(1.50 AS STRING)": "1.50"}
OF_DATES = {"DATE '2020-1-2'": "2020-01-02"}
OF_MOMENTS = {
    "TIMESTAMP '2020-01-01'": "2020-01-01 00:00:00", "TIMESTAMP '2020-01-02 03:04:05.600'": "2020-01-02 03:04:05.6",
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "names"),
    [("INT", OWN_NAMES), ("STRING", OF_TEXTS), ("DATE", OF_DATES), ("TIMESTAMP", OF_MOMENTS),
     ("BOOLEAN", {"true": "true", "NOT true": "false"})],
)  # fmt: skip
def test_a_pivot_column_is_named_after_its_constant(kind: str, names: dict[str, str]) -> None:
    with Database() as database:
        database.execute(f"CREATE TABLE p (x {kind}, n INT)")
        for text, name in names.items():
            query = f"SELECT * FROM p PIVOT (MAX(n) FOR x IN ({text}))"
            database.execute(f"CREATE OR REPLACE MATERIALIZED VIEW v AS {query}")
            assert database.view("v").to_arrow().column_names == [name], text


def test_a_pivot_of_a_wrong_constant_is_refused() -> None:
    with Database() as database, pytest.raises(SqlError, match="is not a date"):
        database.execute("CREATE TABLE p (x DATE, n INT)")
        database.execute("CREATE MATERIALIZED VIEW v AS SELECT * FROM p PIVOT (MAX(n) FOR x IN (DATE 'y'))")
