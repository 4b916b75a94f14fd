"""Counts the rows that a statement inserts, deletes and updates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class RowCounts:
    """How many rows a statement of ``Database.execute`` changed, or a transaction.

    A row that is set to the values that it has counts as updated. Equal rows count each.

    Attributes
    ----------
    inserted, deleted, updated
        Numbers of rows.
    version
        The version that the statement made; where it changed no row, the version that it found.

    Examples
    --------
    >>> db.execute("UPDATE items SET qty = qty + 1 WHERE part = 'bolt'")
    1 row updated, version 2
    """

    inserted: int
    deleted: int
    updated: int
    version: int

    @property
    def rows(self) -> int:
        """The number of all rows that were inserted, deleted or updated."""
        return self.inserted + self.deleted + self.updated

    def __repr__(self) -> str:
        counts = ((self.inserted, "inserted"), (self.deleted, "deleted"), (self.updated, "updated"))
        parts = [f"{count:,} {word}" for count, word in counts if count]
        if not parts:
            return f"no rows changed, version {self.version:,}"
        first, _, rest = ", ".join(parts).partition(" ")
        return f"{first} {'row' if first == '1' else 'rows'} {rest}, version {self.version:,}"
