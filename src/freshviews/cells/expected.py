"""Estimates the rows of a table: how many there are, how many pass the filters, and how many one cell gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from freshviews.catalog.catalog import Catalog, same
from freshviews.cells.cell_plan import HeavyValues, Role, Values


def sizes_of(catalog: Catalog, sizes: Mapping[str, float]) -> dict[str, float]:
    """Expected rows per table, by its defined name; a table that is not in ``sizes`` has the mean, or 1. The clock has
    one row."""
    mean = sum(sizes.values()) / len(sizes) if sizes else 1.0
    return {
        name: next((float(rows) for given, rows in sizes.items() if same(given, name)), 1.0 if table.internal else mean)
        for name, table in catalog.tables.items()
    }


def rows_taken(
    table: str, filters: Iterable[Values], sizes: Mapping[str, float], heavy: Iterable[HeavyValues]
) -> float:
    """Expected rows of a table that pass the filters, as if columns were independent."""
    size = sizes[table]
    taken = size
    for one in filters:
        inside = sum(
            rows
            for each in heavy
            if each.table == table and each.column == one.column
            for value, rows in zip(each.values, each.rows, strict=True)
            if value in one.values
        )
        share = min(inside / size, 1.0) if size else 0.0
        taken *= share if one.inside else 1.0 - share
    return taken


def rows_per_cell(role: Role, sizes: Mapping[str, float], heavy: Iterable[HeavyValues]) -> float:
    """Expected rows of a role in each cell that it reaches."""
    split = prod(dim.share for dim in role.dims if dim.column is not None)
    return rows_taken(role.table, role.heavy, sizes, heavy) / split
