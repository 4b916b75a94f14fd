"""Adds a batch to the stored tables, then checks the tables: deletes of missing rows, unique keys, foreign keys.

Only the net effect of the batch is checked, so its rows may be in any order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from freshviews.engine.codes.encoding import Encoded, whole_or_by_key
from freshviews.engine.tables.base_table import Stopped
from freshviews.engine.tables.foreign_keys import Link
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import BatchError, OutOfMemory, shown

Changes = Sequence[tuple[TableState, Encoded]]
"""A batch: the rows of each table."""


def add_to_base(changes: Changes, tables: Mapping[str, TableState]) -> None:
    """Add a batch to the stored tables and check it; on an error every table is as before."""
    try:
        for table, encoded in changes:
            stored = table.stored
            if stored is not None:
                start = time.perf_counter()
                stopped = stored.add(encoded.batch)
                table.seconds += time.perf_counter() - start
                if stopped is not None:
                    raise _not_added(table, encoded, stopped)
        for table, encoded in changes:
            stored = table.stored
            if stored is not None:
                missing = stored.missing()
                if missing is not None:
                    raise _missing(table, encoded, missing)
                duplicate = stored.duplicate() if stored.keys else None
                if duplicate is not None:
                    raise _duplicate(table, encoded, *duplicate)
        for table, _ in changes:
            for link in table.links:
                _check_link(link, {t.name: e for t, e in changes}, tables)
    except BaseException:
        undo_base(changes)
        raise


def undo_base(changes: Changes) -> None:
    """Remove a provisional batch from the stored tables."""
    for table, _ in changes:
        if table.stored is not None:
            table.stored.undo()


def settle_base(changes: Changes) -> None:
    """Make a batch permanent in the stored tables, and count it."""
    for table, encoded in changes:
        if table.stored is not None:
            table.stored.settle()
        table.counted += len(encoded.batch)


def _not_added(table: TableState, encoded: Encoded, stopped: Stopped) -> Exception:
    row = encoded.position(stopped.row)
    if stopped.out_of_memory:
        return OutOfMemory(f"table {table.name}, row {row}: memory ran out; the batch is refused")
    return _refusal(table, row, None, None, "multiplicities fit BIGINT", "its multiplicity does not fit BIGINT")


def _missing(table: TableState, encoded: Encoded, codes: tuple[int, ...]) -> BatchError:
    assert table.stored is not None
    row = encoded.row_with(dict(zip(table.stored.columns, codes, strict=True)), -1)
    value = _value_of(table, codes)
    rule = "a deleted row must be stored"
    message = f"delete of a row that is not there: {shown(value)}"
    if table.definition.has_primary_key:
        message += f"; {whole_or_by_key(table.definition)}"
    return _refusal(table, row, None, value, rule, message)


def _duplicate(table: TableState, encoded: Encoded, number: int, values: tuple[int, ...]) -> BatchError:
    stored = table.stored
    assert stored is not None
    side = stored.keys[number]
    primary = number == 0 and table.definition.has_primary_key
    rule = f"{'PRIMARY KEY' if primary else 'UNIQUE'} ({', '.join(side.columns)})"
    row = encoded.row_with(dict(zip(side.columns, values, strict=True)), 1)
    value = _values(table, side.columns, values)
    both = []
    for found in stored.rows_with(side, values):
        both.append(shown(_value_of(table, found)))
        if len(both) == 2:
            break
    rows = f"rows {both[0]} and {both[1]}" if len(both) == 2 else f"row {both[0]} twice"
    name = ", ".join(side.columns)
    return _refusal(table, row, name, value, rule, f"{rule} would have {rows}")


def _check_link(link: Link, batches: Mapping[str, Encoded], tables: Mapping[str, TableState]) -> None:
    child, parent = tables[link.child.lower()], tables[link.parent.lower()]
    columns = link.child_side.columns
    referenced = tuple(link.parent_side.columns[link.positions.tolist().index(i)] for i in range(len(columns)))
    rule = f"FOREIGN KEY ({', '.join(columns)}) REFERENCES {parent.name} ({', '.join(referenced)})"
    for values in (link.orphan(), link.deserted()):
        if values is None:
            continue
        value = _values(child, columns, values)
        if child.name in batches:
            row = batches[child.name].row_with(dict(zip(columns, values, strict=True)), 1)
            if row is not None:
                message = f"{rule}: there is no row for {shown(value)}"
                raise _refusal(child, row, ", ".join(columns), value, rule, message)
        row = None
        if parent.name in batches:
            row = batches[parent.name].row_with(dict(zip(referenced, values, strict=True)), -1)
        message = f"{rule} of {child.name}: rows of {child.name} still refer to {shown(value)}"
        raise _refusal(parent, row, ", ".join(referenced), value, rule, message)


def _value_of(table: TableState, codes: Sequence[int]) -> Any:
    """A stored row as a value, its columns in the order of the table."""
    assert table.stored is not None
    named = dict(zip(table.stored.columns, codes, strict=True))
    return table.decoder.row(tuple(named[column.name] for column in table.definition.columns))


def _values(table: TableState, columns: Sequence[str], codes: Sequence[int]) -> Any:
    """The value of one column, or the tuple of several."""
    types = {column.name: column for column in table.definition.columns}
    values = tuple(table.decoder.value(types[c], code) for c, code in zip(columns, codes, strict=True))
    return values[0] if len(values) == 1 else values


def _refusal(
    table: TableState, row: int | None, column: str | None, value: object, rule: str, message: str
) -> BatchError:
    where = f"table {table.name}" + ("" if row is None else f", row {row}")
    where += "" if column is None else f", column {column}"
    return BatchError(f"{where}: {message}", table=table.name, row=row, column=column, value=value, rule=rule)
