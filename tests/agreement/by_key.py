"""Updates of a table with a PRIMARY KEY as the changes by key that have the same net effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from freshviews import Database
from tests.agreement.scenario import BaseTable, Row, Update

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""A method of a database or of a batch, and its arguments."""


def may_change_by_key(table: BaseTable) -> bool:
    """Whether the table takes changes by key."""
    return bool(table.key) and not table.trusted and not table.window


def calls_of(table: BaseTable, updates: Sequence[Update], number: int) -> list[Call]:
    """Calls with the net effect of the updates: by key if the table has one, else ``apply``.

    ``number``: 0 to 3; odd: rows are upserted, not updated; from 2 on: by name.
    """
    if not may_change_by_key(table):
        return [("apply", (table.name, [(*row, m) for row, m in updates]), {})]
    net = Counter[Row]()
    for row, m in updates:
        net[row] += m
    goes = {table.key_of(row): row for row, m in net.items() if m < 0}
    comes = {table.key_of(row): row for row, m in net.items() if m > 0}
    names = [column.name for column in table.columns]
    whole, changed = [], []
    for key, row in comes.items():
        old = goes.get(key)
        if old is None or number % 2:
            whole.append(row if number < 2 else dict(zip(names, row, strict=True)))
        else:
            columns = zip(names, old, row, strict=True)
            changed.append({name: new for name, was, new in columns if name in table.key or not _same(was, new)})
    calls: list[Call] = []
    if keys := [key for key in goes if key not in comes]:
        calls.append(("delete", (table.name,), {"keys": keys}))
    if changed:
        calls.append(("update", (table.name, changed), {}))
    if whole:
        calls.append(("upsert", (table.name, whole), {}))
    return calls


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def commit_by_key(database: Database, calls: Sequence[Call]) -> None:
    """Make the calls one version."""
    if len(calls) == 1:
        ((method, given, named),) = calls
        getattr(database, method)(*given, **named)
        return
    with database.batch() as batch:
        for method, given, named in calls:
            getattr(batch, method)(*given, **named)
