"""Computes for one row which cells get it. In a pipeline, Spark or its workers compute this for whole batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal

from freshviews.cells.cell_plan import CellPlan, Role, Value, Values

Hash = Callable[[Value, str, int], int]
"""``hash(value, kind, seed)``: any integer; equal for equal values of the kind. NULL is passed as None."""

_EXACT = Context(prec=80)
"""Holds 38 digits before the point, and 38 after it."""


def cells_of(role: Role, row: Mapping[str, Value], hashed: Hash) -> tuple[int, ...]:
    """The cells that get a row, given by column names; none if the role does not take it."""
    if not all(_takes(one, row[one.column]) for one in role.heavy):
        return ()
    places = [0]
    for dim in role.dims:
        if dim.column is None:
            coordinates: Iterable[int] = range(dim.share)
        else:
            coordinates = (hashed(cast(row[dim.column], dim.kind), dim.kind, dim.seed) % dim.share,)
        places = [place + coordinate * dim.stride for coordinate in coordinates for place in places]
    return tuple((role.offset + place) % role.cells for place in places)


def cast(value: Value, kind: str) -> Value:
    """Cast the value to the kind, so that equal values hash alike."""
    if value is None:
        return None
    if kind == "double":
        return float(value) + 0.0
    if kind.startswith("decimal"):
        scale = int(kind.removesuffix(")").split(",")[1])
        return Decimal(value).quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    return value


def _takes(one: Values, value: Value) -> bool:
    return (cast(value, one.kind) in one.values) == one.inside


def loads(
    plan: CellPlan, hashed: Hash, rows: Mapping[str, Mapping[str, Sequence[Value]]]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Rows per cell and role: (name of the role, rows per cell), in the order of the roles.

    ``rows``: the columns of each table, by name; missing tables count as empty.
    """
    found = []
    for role in plan.roles:
        counts = [0] * plan.cells
        columns = rows.get(role.table, {})
        names = list(columns)
        for values in zip(*columns.values(), strict=True):
            for cell in cells_of(role, dict(zip(names, values, strict=True)), hashed):
                counts[cell] += 1
        found.append((role.name, tuple(counts)))
    return tuple(found)
