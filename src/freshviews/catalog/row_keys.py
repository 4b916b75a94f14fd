"""Finds keys of a view: its grouping columns, or columns that the keys of the joined tables make unique."""

from __future__ import annotations

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import ViewDef
from freshviews.expr.nodes import Column
from freshviews.query import dependencies

KEY = "freshviews.key"
"""The property of a view that names the columns by which its rows are looked up."""


def declared_key(view: ViewDef) -> tuple[str, ...]:
    """The columns that a view declares as its key; () if it declares none."""
    named = dict(view.properties).get(KEY)
    return () if named is None else tuple(named.split(", "))


def row_keys(view: ViewDef, catalog: Catalog) -> list[tuple[str, ...]]:
    """Columns of a view that determine its rows: its groups, or those that the keys of joined relations imply."""
    found = list(view.checked_keys)
    if not found and len(view.blocks) == 1 and view.combined is None and view.blocks[0].kind == "bag":
        (block,) = view.blocks
        outputs = {o.expr.name: o.name for o in reversed(block.outputs) if isinstance(o.expr, Column)}
        keys = {atom.relation: _keys_of_relation(atom.relation, catalog) for atom in block.query.atoms}
        found = [tuple(outputs[v] for v in key) for key in dependencies.row_keys(block.query, keys, frozenset(outputs))]
    return found


def _keys_of_relation(name: str, catalog: Catalog) -> list[tuple[str, ...]]:
    table = catalog.table(name)
    if table is None:
        below = catalog.view(name)
        return [] if below is None else row_keys(below, catalog)
    needed = {column.name.lower() for column in table.columns if not column.nullable}
    return [key for key in table.checked_keys if all(column.lower() in needed for column in key)]
