"""Divides rows among cells for a block (one SELECT) that reads views.

Each cell gets a part of the rows of the tables that these views read. The cell maintains the views from this part.
A table or view that cannot be divided is whole in every cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from freshviews.catalog.catalog import Catalog, column_named, same
from freshviews.cells.splitting import kind_of, plain_columns, splitting_columns
from freshviews.expr.nodes import Column
from freshviews.query.block import Block
from freshviews.records import dataclass


@dataclass(frozen=True)
class Spread:
    """A relation in cells. ``column``: the column that splits its rows; None: every cell has all rows.

    ``blocks``: for a view, the relations that the atoms of each block read. ``is_view``: a view of constant rows has no
    blocks.
    """

    relation: str
    column: str | None
    blocks: tuple[tuple[tuple[str, Spread], ...], ...] = ()
    is_view: bool = False


def spread_block(block: Block, variable: str | None, catalog: Catalog) -> tuple[tuple[str, Spread], ...] | None:
    """The relation of each atom if the block is split by a variable; None if that splits nothing. Without a variable
    every relation is whole.

    One variable splits the relations of the block. A view is split by an output column. In each block of the view, this
    column must be a grouping column or a column copied from a table. A relation that the variable cannot split is whole
    in every cell.
    """
    plain = plain_columns(block, variable) if variable is not None else {}
    found = []
    for atom in block.query.occurrences:
        parts = _by_column(atom.relation, plain[atom.name], catalog) if atom.name in plain else None
        found.append((atom.name, parts or _whole(atom.relation, catalog)))
    ordinary = [one for name, one in found if block.query.is_ordinary(block.query.atom(name))]
    if variable is not None and all(one.column is None for one in ordinary):
        return None
    return tuple(found)


def tables_of(atoms: tuple[tuple[str, Spread], ...]) -> dict[tuple[str, str | None], None]:
    """The tables that are read, with their splitting columns, each once. Constant views read none."""
    return dict.fromkeys((one.relation, one.column) for _, spread in atoms for one in _leaves(spread))


def common_kind(tables: Mapping[tuple[str, str | None], object], catalog: Catalog) -> str | None:
    """The common kind as which all splitting columns are hashed, or None."""
    types = []
    for name, column in tables:
        table = catalog.table(name)
        definition = column_named(table.columns, column) if table is not None and column is not None else None
        if definition is not None:
            types.append(definition.type)
    return kind_of(types)


def _leaves(spread: Spread) -> Iterator[Spread]:
    if not spread.is_view:
        yield spread
    for atoms in spread.blocks:
        for _, one in atoms:
            yield from _leaves(one)


def _whole(relation: str, catalog: Catalog) -> Spread:
    view = catalog.view(relation)
    if view is None:
        return Spread(relation, None)
    return Spread(relation, None, tuple(spread_block(block, None, catalog) or () for block in view.blocks), True)


def _by_column(relation: str, column: str, catalog: Catalog) -> Spread | None:
    """The relation split by a column; None if that is not possible."""
    table = catalog.table(relation)
    if table is not None:
        return Spread(relation, column) if any(c.name == column for c in splitting_columns(table)) else None
    view = catalog.view(relation)
    assert view is not None
    if not view.blocks:
        return None
    place = next(i for i, c in enumerate(view.columns) if same(c.name, column))
    blocks = []
    for block in view.blocks:
        if block.gathering is not None and place >= block.gathering.groups:
            return None
        expr = block.outputs[place].expr
        whole = block.kind == "global" or block.limit is not None
        if whole or not isinstance(expr, Column) or expr.name not in block.query.free:
            return None
        atoms = spread_block(block, expr.name, catalog)
        if atoms is None:
            return None
        blocks.append(atoms)
    return Spread(relation, column, tuple(blocks), True)
