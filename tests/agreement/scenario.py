"""A scenario of the agreement tests: tables and views in both dialects of SQL, and a stream of versions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from typing import Any

Row = tuple[Any, ...]
Update = tuple[Row, int]
Version = tuple[tuple[str, tuple[Update, ...]], ...]
"""Updates of one or more tables that become one version: (table, rows with signed multiplicities)."""


@dataclass(frozen=True)
class Text:
    """One piece of SQL in the dialects of Spark and of DuckDB."""

    spark: str
    duck: str

    @staticmethod
    def same(sql: str) -> Text:
        return Text(sql, sql)


@dataclass(frozen=True)
class TableColumn:
    """``default``: the constant of its DEFAULT; () without one. ``fixed``: every row has the default value."""

    name: str
    type: str
    nullable: bool = True
    default: tuple[Any, ...] = ()
    fixed: bool = False

    @property
    def spark(self) -> str:
        default = f" DEFAULT {_spark(self.default[0])}" if self.default else ""
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}{default}"


def _spark(value: Any) -> str:
    """A constant as Spark writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return f"'{value}'" if isinstance(value, str | dt.date) else str(value)


@dataclass(frozen=True)
class BaseTable:
    """``columns``: the last one may have a DEFAULT; then the table may get it later than the others."""

    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...] = ()
    trusted: bool = False
    window: int = 0
    """Size of the table's window: it keeps the latest rows; 0: all."""

    @property
    def text(self) -> Text:
        """CREATE TABLE. DuckDB gets no keys: its rows are rewritten for every version."""
        columns = [f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        keys = [f"PRIMARY KEY ({', '.join(self.key)})"] if self.key else []
        properties = ["'freshviews.trusted' = 'true'"] if self.trusted else []
        properties += [f"'freshviews.window' = '{self.window} rows'"] if self.window else []
        listed = f" TBLPROPERTIES ({', '.join(properties)})" if properties else ""
        return Text(
            f"CREATE TABLE {self.name} ({', '.join([*(c.spark for c in self.columns), *keys])}){listed}",
            f"CREATE TABLE {self.name} ({', '.join(columns)})",
        )

    @property
    def default(self) -> tuple[Any, ...]:
        """The DEFAULT of the last column; () without one."""
        return self.columns[-1].default

    @property
    def before(self) -> BaseTable:
        """The table before it gets its last column, if that has a DEFAULT."""
        return replace(self, columns=self.columns[:-1]) if self.default else self

    @property
    def addition(self) -> str:
        """The statement that adds its last column."""
        return f"ALTER TABLE {self.name} ADD COLUMN {self.columns[-1].spark}"

    def with_fixed(self, fixed: bool) -> BaseTable:
        """The table, in which all rows have the DEFAULT in the last column, or may have other values."""
        last = replace(self.columns[-1], fixed=fixed and bool(self.default))
        return replace(self, columns=(*self.columns[:-1], last))

    def key_of(self, row: Row) -> Row | None:
        """The values of the key that the table enforces; None without one."""
        if not self.key or self.trusted:
            return None
        names = [c.name for c in self.columns]
        return tuple(row[names.index(name)] for name in self.key)


@dataclass(frozen=True)
class NamedView:
    """``plain``: the view is not materialised; DuckDB's never are."""

    name: str
    query: Text
    plain: bool = False

    @property
    def text(self) -> Text:
        return Text(
            f"CREATE {'' if self.plain else 'MATERIALIZED '}VIEW {self.name} AS {self.query.spark}",
            f"CREATE VIEW {self.name} AS {self.query.duck}",
        )


@dataclass(frozen=True)
class Scenario:
    """Tables, views over them and over earlier views, and versions to run through.

    ``plain``: views that are not materialised, over the tables; the other views may read them.
    ``duckdb``: whether DuckDB computes the same on these values; it does not if sums of doubles depend on the order of
    the rows.
    """

    tables: tuple[BaseTable, ...]
    views: tuple[NamedView, ...]
    versions: tuple[Version, ...] = field(default=(), repr=False)
    duckdb: bool = True
    plain: tuple[NamedView, ...] = ()

    def table(self, name: str) -> BaseTable:
        return next(table for table in self.tables if table.name == name)

    @property
    def script(self) -> str:
        """The statements in the dialect of freshviews."""
        return ";\n".join(one.text.spark for one in (*self.tables, *self.plain, *self.views)) + ";"

    def __str__(self) -> str:
        lines = [self.script]
        lines += [
            f"version {i}: {table} {', '.join(f'{m:+d} {row}' for row, m in updates)}"
            for i, version in enumerate(self.versions, 1)
            for table, updates in version
        ]
        return "\n".join(lines)
