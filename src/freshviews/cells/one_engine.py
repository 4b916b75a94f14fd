"""Finds how many cells share the rows of each table and view, or why one engine has all of the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.catalog.watermark import takes_whole_versions
from freshviews.catalog.window import window_of
from freshviews.cells.cell_plan import CellPlan, Part
from freshviews.cells.expected import sizes_of
from freshviews.cells.needed import closure, needed_views
from freshviews.cells.splitting import splitting_columns, splitting_of, unmergeable
from freshviews.cells.spreading import common_kind, spread_block, tables_of
from freshviews.query.block import Block
from freshviews.records import dataclass


@dataclass(frozen=True)
class Location:
    """The place of the rows of a table, or of a block of a view. ``name``: of the table or view, with the number of the
    block if it has several. ``where``: the number of cells, the second stage, or the engine in front of the cells.
    ``reason``: why it is one engine; empty for several."""

    name: str
    where: str
    reason: str = ""


def locations(plan: CellPlan, catalog: Catalog, sizes: Mapping[str, float]) -> list[Location]:
    """The place of each view and each table of a plan for several cells, without the clock and what reads it alone.
    ``sizes``: those of the plan."""
    known = sizes_of(catalog, sizes)
    found = []
    internal = {table.name for table in catalog.tables.values() if table.internal}
    for view in needed_views(catalog):
        if internal.issuperset(view.inputs) and view.inputs:
            continue
        if not plan.parts_of(view.name):
            found.append(Location(view.name, _STAGE, "it reads only views, whose rows are in all cells"))
        for number, block in enumerate(view.blocks):
            parts = [part for part in plan.parts_of(view.name) if part.block == number]
            if parts:
                branch = f" ({number + 1} of {len(view.blocks)})" if len(view.blocks) > 1 else ""
                found.append(_of_block(view, block, f"{view.name}{branch}", parts, catalog, known))
    return [*found, *(_of_table(table, plan) for table in catalog.tables.values() if not table.internal)]


_STAGE = "second stage"


def _of_block(
    view: ViewDef, block: Block, name: str, parts: Sequence[Part], catalog: Catalog, sizes: Mapping[str, float]
) -> Location:
    span = max(part.span for part in parts)
    if span == 1 and len({part.offset for part in parts}) == 1:
        return Location(name, "1 cell", _why_whole(block, catalog, sizes))
    if not any(part.merged for part in parts):
        return Location(name, _cells(span))
    if block.limit is not None:
        reason = "the first rows are chosen among the rows of all cells"
    elif view.combined is not None and block.kind != "bag":
        reason = "a set operation compares rows of all cells"
    else:
        reason = "a group may have rows in several cells"
    return Location(name, f"{_cells(span)}, merged in the {_STAGE}", reason)


def _why_whole(block: Block, catalog: Catalog, sizes: Mapping[str, float]) -> str:
    """Why a block that reads a table is in one cell."""
    read = [table for atom in block.query.occurrences for table in _tables_of(atom.relation, catalog)]
    has_groups = block.kind == "groups" or (block.gathering is not None and block.gathering.groups > 0)
    grouped = "its GROUP BY has no column that splits its rows" if has_groups else "it has no GROUP BY"
    refused = unmergeable(block, read)
    if any(catalog.table(atom.relation) is None for atom in block.query.occurrences):
        spreads = [spread_block(block, variable, catalog) for variable in block.query.variables]
        split = [one for one in spreads if one is not None and common_kind(tables_of(one), catalog) is not None]
        if not split:
            return "it reads views and tables, and no column splits all of them"
        return f"{grouped}, and {refused}" if refused else _NOT_WORTH
    atoms = {atom.name: sizes[table.name] for atom, table in zip(block.query.occurrences, read, strict=True)}
    splitting = splitting_of(block, catalog, atoms, {}, {})
    if not splitting.labels:
        whole = dict.fromkeys(table.name for table in read if not splitting_columns(table))
        return "; ".join(f"the keys of {name} have no column in common" for name in whole)
    if refused and splitting.free.isdisjoint(splitting.labels):
        return f"{grouped}, and {refused}"
    return _NOT_WORTH


_NOT_WORTH = "splitting the rows gains nothing, because another view needs all of them in one cell"


def _tables_of(relation: str, catalog: Catalog) -> list[TableDef]:
    table = catalog.table(relation)
    if table is not None:
        return [table]
    view = catalog.view(relation)
    names = () if view is None else (name for one in closure(view, catalog) for name in one.inputs)
    return [found for found in map(catalog.table, names) if found is not None]


def _of_table(table: TableDef, plan: CellPlan) -> Location:
    roles = plan.roles_of(table.name)
    span = max(role.span for role in roles)
    if plan.cells > 1 and takes_whole_versions(table):
        if window_of(table) is None:
            reason = "which rows are late depends on all rows"
            return Location(f"table {table.name}", f"a watermark before {_cells(span)}", reason)
        where = f"a window before {_cells(span)}"
        return Location(f"table {table.name}", where, "which rows leave depends on all rows")
    if span > 1:
        return Location(f"table {table.name}", _cells(span))
    if not splitting_columns(table):
        return Location(f"table {table.name}", "1 cell", "its keys have no column in common")
    names = {role.name for role in roles}
    readers = dict.fromkeys(part.view.partition("#")[0] for part in plan.parts if part.roles & names)
    who = f"view {', '.join(readers)}" if readers else "a foreign key"
    return Location(f"table {table.name}", "1 cell", f"{who} needs all its rows there")


def _cells(number: int) -> str:
    return "1 cell" if number == 1 else f"{number:,} cells"
