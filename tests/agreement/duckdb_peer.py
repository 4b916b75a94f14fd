"""DuckDB, recomputing the views of a scenario from the rows of its tables."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import duckdb

from tests.agreement.scenario import Row, Scenario


@cache
def _connection() -> Any:
    connection = duckdb.connect(":memory:")
    connection.execute("SET threads = 1")
    return connection


PEER_FAILED = (duckdb.InternalException, duckdb.FatalException)
"""An error of DuckDB itself, after which it accepts no more statements."""


def restart() -> None:
    """Begin with a new DuckDB after an internal error has ended the current one."""
    _connection.cache_clear()


class DuckDb:
    """The tables and views of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._connection = _connection()
        self._scenario = scenario
        self._connection.execute("DROP SCHEMA IF EXISTS scenario CASCADE; CREATE SCHEMA scenario; USE scenario")
        for one in (*scenario.tables, *scenario.plain, *scenario.views):
            self._connection.execute(one.text.duck)

    def fill(self, table: str, rows: Mapping[Row, int]) -> None:
        """Make the table hold these rows, with their multiplicities."""
        self._connection.execute(f"DELETE FROM {table}")
        texts = [f"({', '.join(map(literal, row))})" for row, times in rows.items() for _ in range(times)]
        if texts:
            self._connection.execute(f"INSERT INTO {table} VALUES {', '.join(texts)}")

    def rows(self, view: str) -> Counter[Row]:
        """The rows of a view as a bag of comparable values."""
        return Counter(map(comparable, self._connection.execute(f"SELECT * FROM {view}").fetchall()))


def literal(value: Any) -> str:
    """A value as both dialects write it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    return str(value) if isinstance(value, int | Decimal) else repr(value)


def comparable(row: Row) -> Row:
    """The row with doubles cut to eleven digits: sums in another order may differ in the last ones."""
    return tuple(float(f"{v:.11g}") + 0.0 if isinstance(v, float) and v == v else v for v in exact(row))


def exact(row: Row) -> Row:
    """The row with NaN as a value that equals itself."""
    return tuple("NaN" if isinstance(v, float) and v != v else v for v in row)
