"""Defines ``Batch``, which gathers changes of several tables. They become one version when a ``with`` block ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from freshviews.engine.codes.encoding import Encoded
from freshviews.engine.codes.inputs import Keys, Rows
from freshviews.engine.commit.by_key import deleted, updated, upserted
from freshviews.engine.tables.table_state import TableState
from freshviews.errors import FreshviewsError, InterruptedAfterCommit
from freshviews.tracebacks import ends_at_the_call

Encode = Callable[[str, Any, int, int], tuple[TableState, Encoded]]
"""Encodes rows for a table with a sign, for a batch that has a number of rows."""
Parts = Sequence[tuple[TableState, Sequence[Encoded]]]
"""The pieces of a batch, in order, by table."""


class Batch:
    """Rows for several tables, which become one version where the block of ``Database.batch`` ends.

    Rows are checked against the schema at once, against stored rows at the commit, on the net effect of the whole
    batch. Row numbers in errors count within the call that gave the rows. The end of the block raises as
    ``Database.insert``.

    Attributes
    ----------
    version
        The version that the batch became, None before.

    Examples
    --------
    >>> with db.batch() as batch:
    ...     batch.insert("items", [("bolt", 4)])
    ...     batch.delete("items", [("nut", 5)])
    >>> batch.version
    2
    """

    def __init__(self, encode: Encode, commit: Callable[[Parts], int]) -> None:
        self._encode = encode
        self._commit = commit
        self._parts: dict[TableState, list[Encoded]] | None = {}
        self._rows = 0
        self.version: int | None = None

    @ends_at_the_call
    def insert(self, table: str, rows: Rows) -> None:
        """Add rows to insert at the commit.

        Parameters
        ----------
        table, rows
            As of ``Database.insert``.

        Raises
        ------
        BatchError
            A row does not fit the schema.
        CatalogError
            The table is unknown.
        FreshviewsError
            The batch has ended.

        Examples
        --------
        >>> with db.batch() as batch:
        ...     batch.insert("items", [("bolt", 4)])
        """
        self._add(table, rows, 1)

    @ends_at_the_call
    def delete(self, table: str, rows: Rows | None = None, *, keys: Keys | None = None) -> None:
        """Add rows to delete at the commit. Raises as ``insert``.

        Parameters
        ----------
        table, rows, keys
            As of ``Database.delete``. A key names the row that it has at this point of the batch.

        Examples
        --------
        >>> with db.batch() as batch:
        ...     batch.delete("items", [("bolt", 4)])
        """
        self._add(table, deleted(table, rows, keys), -1)

    @ends_at_the_call
    def upsert(self, table: str, rows: Rows) -> None:
        """Add rows that replace, at the commit, those of their keys at this point of the batch.

        Parameters
        ----------
        table, rows
            As of ``Database.upsert``.

        Raises
        ------
        CatalogError
            As of ``Database.upsert``; else as ``insert``.

        Examples
        --------
        >>> db.execute("CREATE TABLE parts (part STRING PRIMARY KEY, price INT, stock INT)")
        >>> with db.batch() as batch:
        ...     batch.upsert("parts", [("bolt", 30, 5), ("nut", 20, 8)])
        ...     batch.upsert("parts", {"part": "bolt", "price": 31, "stock": 5})
        >>> list(db.table("parts"))
        [('nut', 20, 8), ('bolt', 31, 5)]
        """
        self._add(table, upserted(rows, table), 1)

    @ends_at_the_call
    def update(self, table: str, rows: Rows) -> None:
        """Add values that columns have from the commit on, in rows that are there at this point of the batch.

        Parameters
        ----------
        table, rows
            As of ``Database.update``.

        Raises
        ------
        CatalogError
            As of ``Database.upsert``; else as ``insert``. The end of the block raises BatchError if a key has no row.

        Examples
        --------
        >>> db.execute("CREATE TABLE parts (part STRING PRIMARY KEY, price INT, stock INT)")
        >>> with db.batch() as batch:
        ...     batch.insert("parts", [("bolt", 30, 5)])
        ...     batch.update("parts", {"part": "bolt", "stock": 4})
        >>> db.table("parts")["bolt"]
        ('bolt', 30, 4)
        """
        self._add(table, updated(rows, table), 1)

    @ends_at_the_call
    def apply(self, table: str, changes: Rows) -> None:
        """Add signed rows to apply at the commit. Raises as ``insert``.

        Parameters
        ----------
        table, changes
            As of ``Database.apply``.

        Examples
        --------
        >>> with db.batch() as batch:
        ...     batch.apply("items", [("bolt", 4, -1), ("nut", 6, 1)])
        """
        self._add(table, changes, 0)

    def _add(self, table: str, rows: Any, sign: int) -> None:
        if self._parts is None:
            raise FreshviewsError("the batch has ended; begin another with db.batch()")
        state, encoded = self._encode(table, rows, sign, self._rows)
        self._parts.setdefault(state, []).append(encoded)
        self._rows += len(encoded.batch)

    def __enter__(self) -> Batch:
        return self

    @ends_at_the_call
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        parts, self._parts = self._parts, None
        if kind is None and parts is not None:
            try:
                self.version = self._commit([*parts.items()])
            except InterruptedAfterCommit as late:
                self.version = late.version
                raise
