"""Defines ``Answer``, the rows that a SELECT returned, with the number of the version that it read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import pyarrow as pa

from freshviews import arguments
from freshviews.display.grid import ROWS as SHOWN
from freshviews.display.grid import Grid, Shown, bytes_text, rows_text
from freshviews.errors import FreshviewsError
from freshviews.tracebacks import ends_at_the_call
from freshviews.types.frames import Frames

_BATCH = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Shown, Frames):
    """The rows of a SELECT at one version, as ``Database.sql`` returns them; they never change.

    ``fetchone``, ``fetchmany`` and ``fetchall`` go through the rows once. All else reads all of them, at each call.

    Attributes
    ----------
    version
        Number of the version that was read.

    Examples
    --------
    >>> answer = db.sql("SELECT part, qty * 2 AS twice FROM by_part ORDER BY part")
    >>> answer.columns, len(answer), list(answer)
    (('part', 'twice'), 2, [('bolt', 6), ('nut', 10)])
    """

    _rows: pa.Table
    version: int
    _left: list[Iterator[tuple[Any, ...]]] = field(default_factory=list)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._rows.schema.names)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns, as a pyarrow Schema."""
        return self._rows.schema

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table.

        Returns
        -------
        pyarrow.Table

        Examples
        --------
        >>> db.sql("SELECT MAX(qty) AS most FROM items").to_arrow().to_pydict()
        {'most': [5]}
        """
        return self._rows

    @ends_at_the_call
    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None after the last one.

        Returns
        -------
        tuple[Any, ...] | None
            Python values.

        Examples
        --------
        >>> answer = db.sql("SELECT part FROM items ORDER BY part")
        >>> answer.fetchone(), answer.fetchone(), answer.fetchone()
        (('bolt',), ('nut',), None)
        """
        return next(self._next(), None)

    @ends_at_the_call
    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """Return the next rows, fewer at the end.

        Parameters
        ----------
        size
            Most rows, 0 or more; by default 1.

        Returns
        -------
        list[tuple[Any, ...]]

        Raises
        ------
        ArgumentError
            ``size`` is not a whole number of 0 or more.

        Examples
        --------
        >>> db.sql("SELECT part FROM items ORDER BY part").fetchmany(1)
        [('bolt',)]
        """
        arguments.count("fetchmany(size)", size)
        return list(islice(self._next(), size))

    @ends_at_the_call
    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that are left.

        Returns
        -------
        list[tuple[Any, ...]]

        Examples
        --------
        >>> db.sql("SELECT part FROM items ORDER BY part").fetchall()
        [('bolt',), ('nut',)]
        """
        return list(self._next())

    @ends_at_the_call
    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over all rows, from the first one.

        Returns
        -------
        Iterator[tuple[Any, ...]]
            Tuples of Python values.

        Examples
        --------
        >>> [part for part, in db.sql("SELECT part FROM items ORDER BY part")]
        ['bolt', 'nut']
        """
        return _tuples(self._rows)

    def __len__(self) -> int:
        """Count the rows.

        Returns
        -------
        int

        Examples
        --------
        >>> len(db.sql("SELECT part FROM items"))
        2
        """
        return int(self._rows.num_rows)

    def __arrow_c_schema__(self) -> object:
        """Names and types of the columns, by Arrow's PyCapsule interface."""
        return self._rows.schema.__arrow_c_schema__()

    def _next(self) -> Iterator[tuple[Any, ...]]:
        if not self._left:
            self._left.append(_tuples(self._rows))
        return self._left[0]

    def _grid(self) -> Grid:
        rows = list(_tuples(self._rows.slice(0, SHOWN)))
        size = f"{rows_text(len(self))}, {bytes_text(self._rows.nbytes)}"
        types = [str(one.type) for one in self.schema]
        more = len(self) > SHOWN
        return Grid(f"answer at version {self.version:,}: {size}", self.columns, types, rows, more=more)


def _tuples(rows: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in rows.to_batches(_BATCH):
        try:
            columns = [column.to_pylist() for column in batch.columns]
        except (OverflowError, ValueError) as error:
            raise FreshviewsError(
                f"a value does not fit a Python object: {error}; read the rows with to_arrow"
            ) from None
        yield from zip(*columns, strict=True)
