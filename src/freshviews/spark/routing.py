"""Rows to cells, as expressions of Spark: for every row of a table the feeds and cells it goes to.

A row goes to one cell for each role of its table and each combination of the coordinates that the role leaves open; see
``freshviews.cells``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from freshviews.cells import Dim, Role
from freshviews.spark.rows import CELL, TABLE, Slots

_GOES = "_goes"


def routed(frame: DataFrame, tables: Sequence[Slots], roles: Sequence[Sequence[Role]], cells: int) -> DataFrame:
    """A row for each copy: ``frame`` numbers the table of each row in ``_t``; ``roles[t]`` are those of table t.

    What comes back numbers the roles of all tables, one table's after the other's, in ``_t``, and has the cell in
    ``_cell``.
    """
    first = 0
    ways: list[list[tuple[int, Role, Slots]]] = []
    for slots, own in zip(tables, roles, strict=True):
        ways.append([(first + i, role, slots) for i, role in enumerate(own)])
        first += len(own)
    if all(len(own) == 1 and _is_single(own[0]) for own in roles):
        target: Column = F.lit(0)
        for number, way in enumerate(ways):
            _, role, slots = way[0]
            target = F.when(F.col(TABLE) == number, _cell(role, slots, cells, (0,) * len(role.dims))).otherwise(target)
        return frame.withColumn(CELL, target.cast("int"))
    copies: Column | None = None
    for number, way_of_table in enumerate(ways):
        all_copies = F.array(*(copy for way in way_of_table for copy in _copies(way, cells)))
        copies = F.when(F.col(TABLE) == number, all_copies).otherwise(F.lit(None) if copies is None else copies)
    assert copies is not None
    goes = frame.withColumn(_GOES, F.explode(copies)).where(F.col(_GOES).isNotNull())
    return goes.withColumn(TABLE, F.col(f"{_GOES}.t")).withColumn(CELL, F.col(f"{_GOES}.cell")).drop(_GOES)


def _is_single(role: Role) -> bool:
    return not role.heavy and role.copies == 1


def _copies(way: tuple[int, Role, Slots], cells: int) -> list[Column]:
    number, role, slots = way
    found = []
    for coordinates in product(*(range(dim.share) if dim.column is None else (0,) for dim in role.dims)):
        cell = _cell(role, slots, cells, coordinates).cast("int")
        copy = F.struct(F.lit(number).alias("t"), cell.alias("cell"))
        found.append(F.when(_taken(role, slots), copy) if role.heavy else copy)
    return found


def _cell(role: Role, slots: Slots, cells: int, coordinates: Sequence[int]) -> Column:
    """The cell of a row, ``coordinates`` standing in where a dimension is left open."""
    at: Column = F.lit(role.offset)
    for dim, coordinate in zip(role.dims, coordinates, strict=True):
        where = F.lit(coordinate) if dim.column is None else _coordinate(dim, slots)
        at = at + where * F.lit(dim.stride)
    return at % F.lit(cells)


def _coordinate(dim: Dim, slots: Slots) -> Column:
    assert dim.column is not None
    return F.pmod(F.xxhash64(F.lit(dim.seed), _value(dim.column, dim.kind, slots)), F.lit(dim.share))


def _value(column: str, kind: str, slots: Slots) -> Column:
    slot = next(slot for name, slot in slots.items() if name.lower() == column.lower())
    value = F.col(slot).cast(spark_kind(kind))
    if kind == "double":
        # The two zeros are one value to SQL.
        value = F.when(value == 0.0, F.lit(0.0)).otherwise(value)
    return value


def _taken(role: Role, slots: Slots) -> Column:
    """Whether a row is one that a role takes."""
    taken: Column = F.lit(True)
    for one in role.heavy:
        values = [F.lit(value).cast(spark_kind(one.kind)) for value in one.values]
        found = F.coalesce(_value(one.column, one.kind, slots).isin(*values), F.lit(False))
        taken = taken & (found if one.inside else ~found)
    return taken


def spark_kind(kind: str) -> str:
    """A kind of ``freshviews.cells`` in Spark's words; timestamps have no zone."""
    return "timestamp_ntz" if kind == "timestamp" else kind
