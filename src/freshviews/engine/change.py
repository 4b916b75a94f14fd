"""Defines ``Change``: the rows that a view gained and lost from one version to the next. Subscribers get changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Protocol

import pyarrow as pa

from freshviews import arguments
from freshviews.catalog.widening import type_text
from freshviews.display.grid import ROWS, Grid, Shown, rows_text
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.decoding import Decoder
from freshviews.errors import shown
from freshviews.tracebacks import ends_at_the_call
from freshviews.types.frames import Frames


class Change(Shown, Frames):
    """The change of a view from one version to the next: rows and their multiplicities, as a subscriber gets them.

    Attributes
    ----------
    view
        Name of the view.
    version
        The version that the change leads to.
    is_snapshot
        True: these are all rows of the view, in the place of what was seen before. ``View.changes`` begins with them,
        and goes on with them where changes were dropped.

    Examples
    --------
    >>> changes = []
    >>> subscription = db.view("by_part").subscribe(changes.append)
    >>> db.insert("items", [("bolt", 4)])
    2
    >>> changes
    [change of view by_part at version 2: 2 rows
        part    qty
        STRING  BIGINT
    -1  bolt    3
    +1  bolt    7]
    """

    def __init__(
        self, view: str, version: int, batch: CodeBatch, decoder: Decoder, is_snapshot: bool = False
    ) -> None:
        self.view = view
        self.version = version
        self.is_snapshot = is_snapshot
        self._batch = batch
        self._decoder = decoder

    def to_arrow(self) -> pa.Table:
        """Return the change as one Arrow table.

        Returns
        -------
        pyarrow.Table
            The columns of the view and ``_multiplicity``, a BIGINT that is never 0; a line per distinct row.

        Examples
        --------
        >>> changes[0].to_arrow()["_multiplicity"].to_pylist()
        [-1, 1]
        """
        return pa.Table.from_batches([self._decoder.change(self._batch)])

    @ends_at_the_call
    def head(self, n: int = 5) -> pa.Table:
        """Return the first rows of the change, with the columns of ``to_arrow``.

        Parameters
        ----------
        n
            Most rows, 0 or more; by default 5.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        ArgumentError
            ``n`` is not a whole number of 0 or more.

        Examples
        --------
        >>> changes[0].head(1).to_pylist()
        [{'part': 'bolt', 'qty': 3, '_multiplicity': -1}]
        """
        arguments.count("Change.head(n)", n)
        return pa.Table.from_batches([self._cut(slice(n))])

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns of ``to_arrow``, by Arrow's PyCapsule interface."""
        return self._decoder.change_schema.__arrow_c_schema__()

    @ends_at_the_call
    def to_batches(self, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
        """Return the change as record batches, each made when it is asked for.

        Parameters
        ----------
        rows
            Most rows of a record batch, 1 or more; by default 65,536.

        Returns
        -------
        Iterator[pyarrow.RecordBatch]
            The columns of ``to_arrow``.

        Raises
        ------
        ArgumentError
            ``rows`` is no whole number of 1 or more.

        Examples
        --------
        >>> [batch.num_rows for batch in changes[0].to_batches(1)]
        [1, 1]
        """
        arguments.count("Change.to_batches(rows)", rows, 1)
        return self._pieces(rows)

    def _pieces(self, rows: int) -> Iterator[pa.RecordBatch]:
        return (self._cut(slice(start, start + rows)) for start in range(0, len(self._batch), rows))

    def _cut(self, cut: slice) -> pa.RecordBatch:
        return self._decoder.change(self._slice(cut))

    def _slice(self, cut: slice) -> CodeBatch:
        columns = {name: column[cut] for name, column in self._batch.columns.items()}
        return CodeBatch(self.view, columns, self._batch.multiplicities[cut])

    def __iter__(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Iterate over the rows with their multiplicities: positive inserted, negative deleted.

        Returns
        -------
        Iterator[tuple[tuple[Any, ...], int]]
            Pairs of a row, as a tuple of Python values, and its multiplicity.

        Examples
        --------
        >>> list(changes[0])
        [(('bolt', 3), -1), (('bolt', 7), 1)]
        """
        rows = self._decoder.tuples(self._batch)
        return iter(zip(rows, self._batch.multiplicities.tolist(), strict=True))

    def __len__(self) -> int:
        """Count the distinct rows that changed.

        Returns
        -------
        int
            The number of rows.

        Examples
        --------
        >>> len(changes[0])
        2
        """
        return len(self._batch)

    def _grid(self) -> Grid:
        kind = "snapshot" if self.is_snapshot else "change"
        caption = f"{kind} of view {self.view} at version {self.version:,}: {rows_text(len(self))}"
        columns = self._decoder.columns
        names, types = [c.name for c in columns], [type_text(c) for c in columns]
        first = self._slice(slice(ROWS))
        marks = first.multiplicities.tolist()
        return Grid(caption, names, types, self._decoder.tuples(first), marks, len(self) > ROWS)


class Follower(Protocol):
    """What gets the changes of a view, from every commit."""

    @property
    def active(self) -> bool:
        """False: the view may forget it."""

    def put(self, change: Change, waiting: Waiting) -> None:
        """Get a change, in the commit: with the database locked, and without waiting or failing. ``waiting``: calls of
        functions that follow the commit."""

    def end(self) -> None:
        """The view or the database is closed."""


class Subscription(Shown):
    """A function that is called with every change of a view. ``close`` ends it, as does the end of a ``with`` block.

    Attributes
    ----------
    callback
        The function.
    view
        Name of the view.
    active
        True until the subscription ends.

    Examples
    --------
    >>> subscription = db.view("by_part").subscribe(print)
    >>> subscription.active
    True
    """

    def __init__(
        self, callback: Callable[[Change], object], end: Callable[[Subscription], None], view: str = ""
    ) -> None:
        self.callback = callback
        self.view = view
        self.active = True
        self._end = end

    def unsubscribe(self) -> None:
        """End the subscription: no further change is handed to the callback. A second call does nothing.

        Examples
        --------
        >>> subscription.unsubscribe()
        >>> subscription.active
        False
        """
        if self.active:
            self.active = False
            self._end(self)

    __call__ = unsubscribe

    def _grid(self) -> Grid:
        return Grid(f"subscription to view {self.view}, {'active' if self.active else 'ended'}: {shown(self.callback)}")

    def close(self) -> None:
        """End the subscription, as ``unsubscribe`` does.

        Examples
        --------
        >>> with db.view("by_part").subscribe(print) as subscription:
        ...     subscription.close()
        >>> subscription.active
        False
        """
        self.unsubscribe()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


Waiting = deque[tuple[Subscription, Change]]
"""Changes that functions are called with after the commit."""


class Called:
    """A subscription as a follower of its view."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    @property
    def active(self) -> bool:
        return self._subscription.active

    def put(self, change: Change, waiting: Waiting) -> None:
        waiting.append((self._subscription, change))

    def end(self) -> None:
        pass
