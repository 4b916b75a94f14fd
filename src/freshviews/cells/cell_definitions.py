"""Derives the tables and views of each cell, and of the engine that merges results of cells, from a plan of cells.

If the plan routes the rows of a table to cells in several ways, a cell has a separate table for each way.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.catalog.catalog import Catalog, Statement, ViewDefs
from freshviews.catalog.definitions import ColumnDef, TableDef, ViewDef
from freshviews.cells.cell_plan import CellPlan, Copy, Output, Part, Reads, Role
from freshviews.cells.foreign_keys import linked_keys
from freshviews.cells.needed import needed_views, reads_views_alone
from freshviews.cells.partial import merged, passed_on, pieces_of
from freshviews.cells.splitting import table_named
from freshviews.cells.windows import without_window
from freshviews.query.block import Block
from freshviews.query.query import Atom, Query
from freshviews.records import dataclass


def cell_statements(plan: CellPlan, catalog: Catalog, cell: int) -> tuple[Statement, ...]:
    """Return the tables (one per role) and views of a cell.

    The tables are the same in all cells. There the clock is a table as any other, whose row is set in all cells. Cells
    that no row of a view can reach lack the view; readers read it in the other cells. The change of a bag may contain a
    row that one cell inserts and another deletes.
    """
    if plan.cells == 1:
        whole = (replace(table, internal=False) for table in catalog.tables.values())
        return *whole, *(ViewDefs((view,)) for view in catalog.views.values())
    tables = [_table_of(role, plan, catalog) for role in plan.roles]
    views = [
        view
        for kept in _cell_views(plan, catalog)
        for one in kept.views
        if one.part.in_cell(cell, plan.cells)
        for view in one.definitions
    ]
    return *tables, *(ViewDefs((view,)) for view in views)


def merge_statements(plan: CellPlan, catalog: Catalog) -> tuple[Statement, ...]:
    """Return the tables and views of the second stage; () if it is not needed.

    Its tables are trusted: their rows are the changes of cell views (``merge_inputs``), and are not stored.
    """
    if plan.cells == 1:
        return ()
    tables: dict[str, TableDef] = {}
    views: dict[str, ViewDef] = {}
    by_name = {kept.view.name.lower(): kept for kept in _cell_views(plan, catalog)}
    statements: list[Statement] = []

    def add_table(name: str, columns: tuple[ColumnDef, ...]) -> None:
        if name not in tables:
            tables[name] = TableDef(name, columns, trusted=True)
            statements.append(tables[name])

    for view in needed_views(catalog):
        kept = by_name.get(view.name.lower())
        if kept is None:
            for name in view.inputs:
                source = by_name.get(name.lower())
                if source is not None and not source.is_merged:
                    add_table(source.view.name, source.view.columns)
            views[view.name] = view
        elif kept.is_merged:
            for one in kept.views:
                add_table(one.table, one.definitions[-1].columns)
            views[view.name] = replace(view, strategy=None, blocks=kept.merged_blocks())
        if view.name in views:
            statements.append(ViewDefs((views[view.name],)))
    return tuple(statements)


def outputs(plan: CellPlan, catalog: Catalog) -> dict[str, Output]:
    """The source of the rows of every user view, by the view's name."""
    users = [view for view in catalog.views.values() if not view.internal]
    if plan.cells == 1:
        return {view.name: Output("cells", (view.name,)) for view in users}
    in_cells = {kept.view.name: kept for kept in _cell_views(plan, catalog) if not kept.is_merged}
    return {
        view.name: Output("cells", tuple(one.name for one in in_cells[view.name].views))
        if view.name in in_cells
        else Output("merge", (view.name,))
        for view in users
    }


def merge_inputs(plan: CellPlan, catalog: Catalog) -> dict[str, tuple[str, ...]]:
    """Per table of the second stage, the cell views whose contents or changes, over all cells, are its rows."""
    tables = [one.name for one in merge_statements(plan, catalog) if isinstance(one, TableDef)]
    found: dict[str, list[str]] = {name: [] for name in tables}
    for kept in _cell_views(plan, catalog) if tables else ():
        for one in kept.views:
            name = one.table if kept.is_merged else kept.view.name
            if name in found:
                found[name].append(one.name)
    return {name: tuple(views) for name, views in found.items()}


@dataclass(frozen=True)
class _CellView:
    """A view of cells. ``table``: its table in the second stage, if the view is merged. ``definitions``: the view,
    after the views that it alone reads."""

    name: str
    table: str
    part: Part
    definitions: tuple[ViewDef, ...]


@dataclass(frozen=True)
class _Kept:
    """All views that cells have for one user view."""

    view: ViewDef
    views: tuple[_CellView, ...]

    @property
    def is_merged(self) -> bool:
        return any(one.part.merged for one in self.views)

    def merged_blocks(self) -> tuple[Block, ...]:
        """The blocks of the view over its tables of the second stage."""
        found = []
        for number, block in enumerate(self.view.blocks):
            tables = list(dict.fromkeys(one.table for one in self.views if one.part.block == number))
            partial = any(one.part.merged for one in self.views if one.part.block == number)
            found.append(merged(block, tables) if partial else passed_on(self.view, block, tables[0]))
        return tuple(found)


def _cell_views(plan: CellPlan, catalog: Catalog) -> list[_Kept]:
    """The cell views of each view, in order of creation; none for views of the second stage."""
    return [_kept_of(view, plan, catalog) for view in needed_views(catalog) if not reads_views_alone(view, catalog)]


def _kept_of(view: ViewDef, plan: CellPlan, catalog: Catalog) -> _Kept:
    parts = plan.parts_of(view.name)
    alone = len(parts) == 1 and not parts[0].merged
    found: list[_CellView] = []
    tables: dict[tuple[int, int], str] = {}
    for part in parts:
        block = view.blocks[part.block]
        pieces = [(p.columns, p.block) for p in pieces_of(block)] if part.merged else [(view.columns, block)]
        for place, (columns, piece) in enumerate(pieces):
            name = view.name if alone else f"{view.name}@{len(found) + 1}"
            table = tables.setdefault((part.block, place), name)
            rebased = _rebase_block(piece, part.reads, name)
            made = replace(view, name=name, columns=columns, blocks=(rebased,), internal=False)
            made = replace(made, combined=None, order=None)
            copies = () if place else tuple(_copy_view(copy, catalog) for copy in part.copies)
            found.append(_CellView(name, table, part, (*copies, made)))
    return _Kept(view, tuple(found))


def _copy_view(copy: Copy, catalog: Catalog) -> ViewDef:
    """A view under another name, over the relations of the cell."""
    view = catalog.view(copy.view)
    assert view is not None
    numbered = len(view.blocks) > 1
    blocks = tuple(
        _rebase_block(block, reads, f"{copy.name}.{i + 1}" if numbered else copy.name)
        for i, (block, reads) in enumerate(zip(view.blocks, copy.reads, strict=True))
    )
    return replace(view, name=copy.name, blocks=blocks, internal=True, order=None)


def _rebase_block(block: Block, reads: Reads, name: str) -> Block:
    """The block under another name, its atoms reading other relations."""
    relations = dict(reads)

    def over(query: Query, named: str) -> Query:
        def moved(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
            return tuple(replace(atom, relation=relations[atom.name]) for atom in atoms)

        return replace(query, name=named, atoms=moved(query.atoms), negated=moved(query.negated))

    distinct = tuple(replace(one, query=over(one.query, f"{name}.{one.name}")) for one in block.distinct)
    return replace(block, query=over(block.query, name), distinct=distinct)


def _table_of(role: Role, plan: CellPlan, catalog: Catalog) -> TableDef:
    """The table of a role in a cell."""
    table = without_window(table_named(catalog, role.table))
    linked = linked_keys(table, role, plan.links)
    return replace(table, name=role.name, foreign_keys=linked, internal=False)
