"""The independent check: DuckDB recomputes every view over the same data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot

TOLERANCE = 1e-9
"""Relative difference that is allowed: DuckDB adds doubles in another order."""

Row = tuple[Any, ...]


def answers(views: Mapping[str, str], tables: Mapping[str, pa.Table]) -> dict[str, list[Row]]:
    """DuckDB's rows of each view, given as its CREATE MATERIALIZED VIEW in Spark's SQL; later ones may read earlier."""
    found: dict[str, list[Row]] = {}
    with duckdb.connect() as duck:
        for name, table in tables.items():
            duck.register(name, table)
        for name, sql in views.items():
            select = sqlglot.parse_one(sql, read="spark").expression
            duck.execute(f"CREATE TABLE {name} AS {select.sql('duckdb')}")
            found[name] = duck.execute(f"SELECT * FROM {name}").fetchall()
    return found


def first_difference(ours: Iterable[Row], theirs: Iterable[Row]) -> str | None:
    """Compare two bags of rows, doubles within TOLERANCE; None if they agree."""
    mine, other = sorted(ours, key=_order), sorted(theirs, key=_order)
    if len(mine) != len(other):
        return f"{len(mine)} rows, DuckDB has {len(other)}"
    for one, another in zip(mine, other, strict=True):
        if not all(map(_same, one, another)):
            return f"{one}, DuckDB has {another}"
    return None


def _order(row: Row) -> list[tuple[bool, str]]:
    """Sorts doubles last and rounded, so that nearly equal ones do not separate equal rows."""
    exact = [(value is None, str(value)) for value in row if not isinstance(value, float)]
    return exact + [(False, f"{value:.6g}") for value in row if isinstance(value, float)]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=TOLERANCE) or (one != one and other != other)
    return bool(one == other)
