"""Routes the rows of two tables so that a cell can check a foreign key from one table to the other.

A row and the row to which its foreign key refers meet in one cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from freshviews.catalog.definitions import ColumnDef, ForeignKey, TableDef
from freshviews.cells.cell_plan import Dim, Link, Role
from freshviews.cells.splitting import kind_of, splitting_columns


def pairs(key: ForeignKey, child: TableDef, parent: TableDef, roles: Sequence[Role]) -> Iterator[tuple[Role, Role]]:
    """Matching roles of a child and of its parent: for each role of the child, and for a new role by each column of the
    key. ``roles``: the existing ones; at least one takes all rows of the child.

    A cell checks a foreign key among its own rows. So the parent of each child row must be in the same cell. Both roles
    have the same grid. Along each dim, either parent rows are copied, or both roles are split: by the referring and the
    referenced column. One pair of roles per foreign key is enough, because a batch that one cell refuses is refused in
    all cells.
    """
    referenced = {c.lower(): r for c, r in zip(key.columns, key.referenced, strict=True)}
    whole = [role for role in roles if role.table == child.name and not role.heavy]
    cells = roles[0].cells
    by_key = [
        Role(child.name, child.name, cells, (Dim(column.name, _kind(column), 0, cells, 1),))
        for column in splitting_columns(child)
        if column.name.lower() in referenced
    ]
    may_split = {column.name.lower() for column in splitting_columns(parent)}

    def of_parent(dim: Dim) -> Dim:
        to = None if dim.column is None else referenced.get(dim.column.lower())
        if to is None or to.lower() not in may_split:
            return replace(dim, column=None, kind="")
        return replace(dim, column=to)

    for role in (*whole, *by_key):
        yield role, replace(role, name=parent.name, table=parent.name, dims=tuple(map(of_parent, role.dims)))


def linked_keys(table: TableDef, role: Role, links: Iterable[Link]) -> tuple[ForeignKey, ...]:
    """The foreign keys that a role of a table checks in its cells."""
    return tuple(replace(table.foreign_keys[one.key], table=one.parent) for one in links if one.child == role.name)


def _kind(column: ColumnDef) -> str:
    return str(kind_of((column.type,)))
