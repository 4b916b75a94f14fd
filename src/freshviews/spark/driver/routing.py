"""Writes Spark expressions that compute, for each row of a table, the cells to which the row is sent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pyspark.sql import DataFrame

from freshviews.cells import Dim, Role, Values
from freshviews.spark.io.columns import text_literal
from freshviews.spark.worker.rows import TABLE, TO, Slots, cell_and_feed


def routed(frame: DataFrame, tables: Sequence[Slots], roles: Sequence[Sequence[Role]], cells: int) -> DataFrame:
    """One row per copy, with ``_to`` in place of ``_t``. ``roles[t]``: the roles of table t. Feeds are the roles of all
    tables, one table after the other."""
    kept = [f"`{name}`" for name in frame.columns if name != TABLE]
    feeds = sum(map(len, roles))
    if all(len(own) == 1 and own[0].copies == 1 and not own[0].heavy for own in roles):
        alone = [(own[0], slots) for own, slots in zip(roles, tables, strict=True)]
        goes = _by_table([_cell(role, slots, cells, [0] * len(role.dims)) for role, slots in alone])
        return frame.selectExpr(f"{cell_and_feed(goes, TABLE, feeds)} AS {TO}", *kept)
    first = 0
    arrays = []
    for slots, own in zip(tables, roles, strict=True):
        copies = [copy for i, role in enumerate(own) for copy in _copies(first + i, role, slots, cells, feeds)]
        arrays.append(f"array({', '.join(copies)})")
        first += len(own)
    # Numbers, no structs, and no function of arrays but array: Spark generates code for these in each release.
    return frame.selectExpr(f"explode({_by_table(arrays)}) AS {TO}", *kept).where(f"{TO} IS NOT NULL")


def _by_table(expressions: Sequence[str]) -> str:
    """The expression for the row's table."""
    if len(expressions) == 1:
        return expressions[0]
    cases = " ".join(f"WHEN {number} THEN {found}" for number, found in enumerate(expressions))
    return f"CASE {TABLE} {cases} END"


def _copies(number: int, role: Role, slots: Slots, cells: int, feeds: int) -> list[str]:
    """``_to`` of each copy of a row; NULL if the role does not take the row."""
    found = []
    for coordinates in product(*(range(dim.share) if dim.column is None else (0,) for dim in role.dims)):
        copy = cell_and_feed(_cell(role, slots, cells, coordinates), number, feeds)
        found.append(f"IF({_role_condition(role.heavy, slots)}, {copy}, NULL)" if role.heavy else copy)
    return found


def _cell(role: Role, slots: Slots, cells: int, coordinates: Sequence[int]) -> str:
    """The cell of a row; ``coordinates`` supply the open dimensions."""
    terms = [str(role.offset)]
    for dim, coordinate in zip(role.dims, coordinates, strict=True):
        terms.append(f"{coordinate if dim.column is None else _coordinate(dim, slots)} * {dim.stride}")
    return f"({' + '.join(terms)}) % {cells}"


def _coordinate(dim: Dim, slots: Slots) -> str:
    assert dim.column is not None
    return f"pmod(xxhash64({dim.seed}, {_value(dim.column, dim.kind, slots)}), {dim.share})"


def _value(column: str, kind: str, slots: Slots) -> str:
    slot = next(slot for name, slot in slots.items() if name.lower() == column.lower())
    # Any cell may get a text that is not of the type: the worker refuses it. Zones count as there.
    value = f"try_cast(`{slot}` AS {kind})"
    if kind == "timestamp":
        value = f"CAST({value} AS {_spark_kind(kind)})"
    # The two zeros are one value in SQL.
    return f"IF({value} = 0D, 0D, {value})" if kind == "double" else value


def _role_condition(heavy: Sequence[Values], slots: Slots) -> str:
    """The condition that a role takes a row."""
    tests = []
    for one in heavy:
        values = ", ".join(f"CAST({text_literal(str(value))} AS {_spark_kind(one.kind)})" for value in one.values)
        found = f"coalesce({_value(one.column, one.kind, slots)} IN ({values}), false)"
        tests.append(found if one.inside else f"NOT {found}")
    return " AND ".join(tests)


def _spark_kind(kind: str) -> str:
    """The Spark type of a kind of ``freshviews.cells``; timestamps have no zone."""
    return "timestamp_ntz" if kind == "timestamp" else kind
