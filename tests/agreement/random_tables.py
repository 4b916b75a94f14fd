"""Random tables and streams of versions.

Values come from small domains, so that joins hit, groups vanish and NULLs meet.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tests.agreement.choices import Choices
from tests.agreement.scenario import BaseTable, Row, TableColumn, Update, Version
from tests.agreement.sql_expressions import DATES, STRINGS, TIMESTAMPS

TYPES = {
    "int": ("BIGINT", "BIGINT", "BIGINT", "INT", "INT", "SMALLINT", "TINYINT"),
    "decimal": ("DECIMAL(6, 2)", "DECIMAL(6, 2)", "DECIMAL(15, 3)", "DECIMAL(20, 1)"),
    "double": ("DOUBLE", "DOUBLE", "FLOAT"),
    "string": ("STRING",),
    "date": ("DATE",),
    "bool": ("BOOLEAN",),
    "timestamp": ("TIMESTAMP",),
}
"""The SQL types of each kind."""
_DOMAINS: dict[str, tuple[Any, ...]] = {
    "BIGINT": (0, 1, 0, 1, 2),
    "INT": (0, 1, 0, 1, -1),
    "SMALLINT": (0, 1, 2),
    "TINYINT": (0, 1, -1),
    "DECIMAL(4, 1)": tuple(Decimal(i) / 2 for i in range(16)),
    "DECIMAL(6, 2)": tuple(map(Decimal, ("0.50", "1.00", "-1.25"))),
    "DECIMAL(15, 3)": tuple(map(Decimal, ("0.500", "1.000", "123456789.125"))),
    "DECIMAL(20, 1)": tuple(map(Decimal, ("0.5", "1.0", "1000000000000.5", "999999999999999999.5"))),
    "DOUBLE": (0.5, 2.0, -1.5, 0.0),
    "FLOAT": (0.5, 1.0, -0.25),
    "STRING": STRINGS,
    "DATE": tuple(map(dt.date.fromisoformat, DATES)),
    "BOOLEAN": (True, False),
    "TIMESTAMP": tuple(map(dt.datetime.fromisoformat, TIMESTAMPS)),
}
_WILD = (0.1, 0.7, 1e16, float("inf"), float("-inf"), float("nan"), -0.0, 2.0**-115, 2.0**78, 5e-324)


def table(choose: Choices, name: str, edges: bool) -> BaseTable:
    """With ``edges``, the first two columns join like those of a graph."""
    columns = [TableColumn("k", "BIGINT", choose.chance(30))]
    for i in range(1, choose.between(1, 3) + 1):
        kind = choose.pick(("int", "int", "int", "decimal", "double", "string", "date", "bool", "timestamp"))
        type_ = "BIGINT" if edges and i == 1 else choose.pick(TYPES[kind])
        columns.append(TableColumn("abc"[i - 1], type_, choose.chance(35)))
    key: tuple[str, ...] = ()
    if choose.chance(35):
        key = tuple(c.name for c in columns[: choose.between(1, 2)])
        columns = [replace(c, nullable=c.nullable and c.name not in key) for c in columns]
    return BaseTable(name, tuple(columns), key, choose.chance(15))


def with_default(choose: Choices, table: BaseTable) -> BaseTable:
    """The table with a DEFAULT of its last column, unless that is in the key."""
    last = table.columns[-1]
    if len(table.columns) < 2 or last.name in table.key:
        return table
    default = None if last.nullable and choose.chance(30) else choose.pick(_DOMAINS[last.type])
    return replace(table, columns=(*table.columns[:-1], replace(last, default=(default,))))


def versions(choose: Choices, tables: Sequence[BaseTable], wild: bool) -> tuple[Version, ...]:
    present: dict[str, Counter[Row]] = {table.name: Counter() for table in tables}
    made = []
    for i in range(choose.between(2, 7)):
        chosen = [table for table in tables if i == 0 or choose.chance(40)] or [choose.pick(tables)]
        version = []
        for table in chosen:
            drawn: list[Update] = []
            for _ in range(choose.between(2 if i == 0 else 1, 4)):
                drawn += updates(choose, table, present[table.name], wild, 10 if i == 0 else 40)
            version.append((table.name, tuple(drawn)))
        made.append(tuple(version))
    return tuple(made)


def updates(choose: Choices, table: BaseTable, present: Counter[Row], wild: bool, deletes: int) -> list[Update]:
    """An insert, a delete, or the replacement of the row with the same key."""
    here = [row for row, m in present.items() if m]
    if here and choose.chance(deletes):
        row = choose.pick(here)
        m = -present[row] if choose.chance(70) or table.trusted else -1
        present[row] += m
        return [(row, m)]
    row = tuple(_value(choose, c, wild) for c in table.columns)
    m = choose.pick((1, 1, 2, -1)) if table.trusted else 1 if table.key else choose.pick((1, 1, 2))
    found = [(row, m)]
    if table.key_of(row) is not None:
        same = [one for one in here if table.key_of(one) == table.key_of(row)]
        found = [*found, *((one, -1) for one in same)]
        if choose.chance(50):
            found.reverse()
    for one, times in found:
        present[one] += times
    return found


def _value(choose: Choices, column: TableColumn, wild: bool) -> Any:
    if column.fixed:
        return column.default[0]
    domain = _DOMAINS[column.type] + (_WILD if wild and column.type == "DOUBLE" else ())
    if column.nullable and choose.chance(15):
        return None
    return choose.pick(domain)
