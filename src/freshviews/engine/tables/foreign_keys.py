"""Checks foreign keys after a batch: the foreign key of each child row must be a key of some parent row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from freshviews.catalog.definitions import TableDef
from freshviews.engine.codes.code_batch import Codes, address_of
from freshviews.engine.tables.base_table import BaseTable, Side
from freshviews.errors import CatalogError
from freshviews.kernel.hash import base_reads

Check = Callable[[int, int, int, int, int, int, int], int]
"""``base_reads.orphan`` or ``base_reads.deserted``."""


@dataclass(frozen=True, eq=False)
class Link:
    """A foreign key: the child's counts by value, and the key of the parent it refers to.

    ``positions[i]`` is where word ``i`` of the parent's key lies among the child's foreign-key columns.
    """

    child: str
    child_side: Side
    parent: str
    parent_side: Side
    positions: Codes

    def orphan(self) -> tuple[int, ...] | None:
        """A touched value that child rows have and no parent has, in the child's order, or None."""
        return self._found(base_reads.orphan, self.child_side, self.parent_side)

    def deserted(self) -> tuple[int, ...] | None:
        """A touched key that child rows still have and no parent has any more, in the child's order, or None."""
        found = self._found(base_reads.deserted, self.parent_side, self.child_side)
        if found is None:
            return None
        values = dict(zip(self.positions.tolist(), found, strict=True))
        return tuple(values[i] for i in range(len(found)))

    def _found(self, check: Check, touched: Side, other: Side) -> tuple[int, ...] | None:
        columns = len(self.positions)
        scratch = np.empty(4 * columns, np.int64)
        parent = self.parent_side
        places = address_of(self.positions)[0], address_of(scratch)[0]
        row = check(touched.handle, other.handle, columns, *places, parent.packing.address, parent.words)
        return touched.codes_at(row) if row else None


def links_of(
    child: TableDef, stored: BaseTable, parents: Mapping[str, tuple[TableDef, BaseTable | None]]
) -> Iterator[Link]:
    """The links of a stored table's foreign keys; ``parents``: the referenced tables, by lower-case name.

    The definition was checked: foreign keys refer to keys of equal types. Raises CatalogError if a parent is trusted.
    """
    for key, side in zip(child.foreign_keys, stored.foreign, strict=True):
        parent, parent_stored = parents[key.table.lower()]
        if parent_stored is None:
            raise CatalogError(
                f"table {child.name}, FOREIGN KEY ({', '.join(key.columns)}): the rows of the trusted table "
                f"{parent.name} are not stored, so the key cannot be checked; declare {child.name} trusted as well, or "
                "leave the key out"
            )
        parent_side = next(s for s in parent_stored.keys if set(s.columns) == set(key.referenced))
        positions = np.array([key.referenced.index(name) for name in parent_side.columns], np.int64)
        yield Link(child.name, side, parent.name, parent_side, positions)
