"""freshviews has the answers of Spark; DuckDB has those that the table records."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from freshviews import Database
from freshviews.errors import BatchError, SqlError, UnsupportedSql
from tests.sql.meanings import DIFFERENT, ERROR, QUESTIONS, REFUSED, TABLES, comparable

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(0)]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_view_returns_the_same_rows_as_spark(name: str) -> None:
    question = QUESTIONS[name]
    if question.spark == ERROR:
        with pytest.raises((BatchError, SqlError)):
            _rows(question.query)
    else:
        assert comparable(_rows(question.query)) == comparable(question.spark)


@pytest.mark.parametrize("name", REFUSED)
def test_queries_that_only_spark_answers_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedSql):
        _rows(REFUSED[name].query)


def _rows(query: str) -> list[Any]:
    with Database() as database:
        for table, (columns, _) in TABLES.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
        database.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
        for table, (_, rows) in TABLES.items():
            database.insert(table, rows)
        return list(database.view("v"))


@pytest.fixture(scope="module")
def connection() -> Any:
    made = duckdb.connect()
    for table, (columns, rows) in TABLES.items():
        made.execute(f"CREATE TABLE {table} ({columns})")
        if rows:
            made.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return made


@pytest.mark.parametrize("name", QUESTIONS)
def test_duckdb_returns_the_answers_in_the_table_of_meanings(name: str, connection: Any) -> None:
    question = QUESTIONS[name]
    if question.duckdb == ERROR:
        with pytest.raises(duckdb.Error):
            connection.execute(question.in_duckdb).fetchall()
    else:
        assert comparable(connection.execute(question.in_duckdb).fetchall()) == comparable(question.duckdb)


def test_spark_and_duckdb_differ_on_the_recorded_queries() -> None:
    for name, question in DIFFERENT.items():
        assert question.spark == ERROR or comparable(question.spark) != comparable(question.duckdb), name
