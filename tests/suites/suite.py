"""A suite: tables with the values of their columns, and queries; random streams over them, and what a run checks."""

from __future__ import annotations

import datetime as dt
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import duckdb

from freshviews import Database
from freshviews.engine.change import Change
from tests.agreement.duckdb_peer import literal

Row = tuple[Any, ...]

SIXTH_DIGIT = 1e-6
"""DuckDB computes AVG of decimals as a double, and Spark as a decimal with four digits more."""
SMALL_SHARE = 0.05
FIXED_SHARE = 0.75
_FIXED = re.compile(r"(?<!<> )(?<!NOT LIKE )'([^']*)'|(?<!<> )\b(\d\d+|\d+\.\d+)\b")


@dataclass(frozen=True)
class Column:
    """A column: its name, its type as SQL text, and the values that it may have."""

    name: str
    type: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Table:
    """A table, its primary key, and how many rows of it a stream holds."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    rows: int = 12

    def ddl(self, keys: bool) -> str:
        """CREATE TABLE, with the primary key or without."""
        columns = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        key = f", PRIMARY KEY ({', '.join(self.key)})" if keys and self.key else ""
        return f"CREATE TABLE {self.name} ({columns}{key})"


@dataclass(frozen=True)
class Query:
    """A view; the text for DuckDB where the dialects differ; and the plain views that it reads."""

    text: str
    duck: str = ""
    views: tuple[str, ...] = ()

    @property
    def for_duck(self) -> str:
        """The text that DuckDB takes."""
        text = self.duck or self.text
        return text.replace("LEFT SEMI JOIN", "SEMI JOIN").replace("LEFT ANTI JOIN", "ANTI JOIN")


@dataclass(frozen=True)
class Suite:
    """Tables and queries by their names."""

    tables: tuple[Table, ...]
    queries: dict[str, Query]
    empty: frozenset[str] = frozenset()
    """Queries that have no row, or only over data that no random stream has."""
    slow: bool = False
    """Whether joins of many tables take seconds as plain Python."""

    def read_by(self, query: Query) -> tuple[Table, ...]:
        """The tables that a query names."""
        words = set(re.findall(r"\w+", " ".join((query.text, *query.views)).lower()))
        return tuple(table for table in self.tables if table.name.lower() in words)


def database(suite: Suite, name: str, keys: bool) -> Database:
    """A database with the tables that a query reads, and the query as the view ``v``."""
    query = suite.queries[name]
    found = Database()
    for table in suite.read_by(query):
        found.execute(table.ddl(keys))
    for view in query.views:
        found.execute(view)
    found.execute(f"CREATE MATERIALIZED VIEW v AS {query.text}")
    return found


def strategies(found: Database) -> set[str]:
    """The strategies of all views of a database, internal ones included."""
    return {str(view["strategy"]) for view in found.stats()["views"].values()}


def compare(suite: Suite, name: str, keys: bool, seed: int) -> int:
    """Run a random stream and compare the view with DuckDB after every version; how often it had rows.

    The changes that a subscriber is sent must add up to the contents.
    """
    query = suite.queries[name]
    tables = suite.read_by(query)
    with database(suite, name, keys) as ours, duckdb.connect() as theirs:
        theirs.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for table in tables:
            theirs.execute(table.ddl(keys=False).replace("STRING", "VARCHAR"))
        for view in query.views:
            theirs.execute(view)
        added: Counter[Row] = Counter()
        ours.view("v").subscribe(_adding(added))
        for row in ours.view("v"):
            added[row] += 1
        with_rows = 0
        for stored in stream(tables, fixed_values(query.text), keys, seed, ours):
            for table in tables:
                theirs.execute(f"DELETE FROM {table.name}")
                rows = ", ".join(f"({', '.join(map(literal, row))})" for row in stored[table.name])
                if rows:
                    theirs.execute(f"INSERT INTO {table.name} VALUES {rows}")
            found, expected = list(ours.view("v")), theirs.execute(query.for_duck).fetchall()
            assert alike(found, expected), f"{name} has {found}, not {expected}; over {stored}"
            assert Counter(found) == +added, f"changes of {name} add up to {+added}, not to {found}"
            with_rows += any(value is not None for row in found for value in row)
    return with_rows


def _adding(added: Counter[Row]) -> Callable[[Change], None]:
    def add(change: Change) -> None:
        for row, m in change:
            added[row] += m
            if not added[row]:
                del added[row]

    return add


def fixed_values(text: str) -> set[str]:
    """The constants that a query compares with, as text; not those that it excludes, nor single digits."""
    return {one for pair in _FIXED.findall(text) for one in pair if one}


def stream(
    tables: Sequence[Table], fixed: set[str], keys: bool, seed: int, ours: Database, versions: int = 7
) -> Iterator[dict[str, list[Row]]]:
    """Commit random versions; the rows of all tables after each: at the end there are none.

    Values that occur in the query are drawn more often, so that its filters let rows pass.
    """
    draw = random.Random(seed)
    stored: dict[str, list[Row]] = {table.name: [] for table in tables}
    for version in range(versions):
        with ours.batch() as batch:
            for table in tables:
                rows = stored[table.name]
                gone = draw.sample(range(len(rows)), min(len(rows), draw.randint(0, 1 + table.rows // 4)))
                batch.delete(table.name, [rows[i] for i in gone])
                kept = [row for i, row in enumerate(rows) if i not in gone]
                many = table.rows if version == 0 else draw.randint(0, 1 + table.rows // 4)
                fresh = _fresh(table, kept, fixed, keys, draw, many)
                batch.insert(table.name, fresh)
                stored[table.name] = kept + fresh
        yield stored
    for table in tables:
        ours.delete(table.name, stored[table.name])
        stored[table.name] = []
        yield stored


def _fresh(table: Table, kept: Sequence[Row], fixed: set[str], keys: bool, draw: random.Random, many: int) -> list[Row]:
    """Random rows; without keys some occur twice, and columns outside the key have NULLs."""
    places = [i for i, column in enumerate(table.columns) if column.name in table.key]
    taken = {tuple(row[i] for i in places) for row in kept}
    found: list[Row] = []
    for _ in range(many):
        if found and not keys and draw.random() < SMALL_SHARE:
            found.append(draw.choice(found))
            continue
        row = tuple(_value(column, column.name in table.key, fixed, draw) for column in table.columns)
        key = tuple(row[i] for i in places)
        if keys and places and key in taken:
            continue
        taken.add(key)
        found.append(row)
    return found


def _value(column: Column, in_key: bool, fixed: set[str], draw: random.Random) -> Any:
    if not in_key and draw.random() < SMALL_SHARE and "NOT NULL" not in column.type:
        return None
    wanted = [value for value in column.values if _occurs(value, fixed)]
    return draw.choice(wanted if wanted and draw.random() < FIXED_SHARE else column.values)


def _occurs(value: Any, fixed: set[str]) -> bool:
    text = str(value)
    if isinstance(value, dt.date):
        return text[:4] in {one[:4] for one in fixed}
    if not isinstance(value, str):
        return text in fixed
    return any(text.startswith(one) or (len(one) > 2 and one.strip("%").split("%")[0] in text) for one in fixed)


def alike(found: Sequence[Row], expected: Sequence[Row]) -> bool:
    """Whether two bags of rows are equal, numbers up to what types of DuckDB and freshviews differ in."""
    if len(found) != len(expected):
        return False
    pairs = zip(sorted(found, key=_order), sorted(expected, key=_order), strict=True)
    return all(len(a) == len(b) and all(map(_equal, a, b)) for a, b in pairs)


def _order(row: Row) -> Any:
    return [(value is not None, f"{float(value):.6g}" if _number(value) else str(value)) for value in row]


def _number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _equal(a: Any, b: Any) -> bool:
    if not (_number(a) and _number(b)):
        return bool(a == b)
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return abs(float(a) - float(b)) <= max(SIXTH_DIGIT, 1e-9 * abs(float(a)))
