"""Defines the cursors of PEP 249. A cursor executes statements, and fetches the rows of the last SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa

from freshviews.asking import Answer
from freshviews.dbapi.exceptions import InterfaceError, ProgrammingError, raises_errors

Parameters = Sequence[Any] | Mapping[str, Any] | None
Column = tuple[str, str, None, None, int | None, int | None, None]
Run = Callable[[str, Parameters], "Answer | int"]
RunMany = Callable[[str, Iterable[Parameters]], int]

_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.binary(): "BINARY",
}


class Cursor:
    """Executes statements, and hands out the rows of the last one, as PEP 249 wants. ``Connection.cursor`` makes one.

    Attributes
    ----------
    arraysize
        Number of rows that ``fetchmany`` fetches by default: 1.

    Examples
    --------
    >>> cursor = fv.dbapi.connect(db).cursor()
    >>> cursor.execute("SELECT part, qty FROM by_part WHERE qty > ? ORDER BY part", [2]).fetchall()
    [('bolt', 3), ('nut', 5)]
    """

    def __init__(self, connection: Any, run: Run, run_many: RunMany) -> None:
        self.arraysize = 1
        self._connection = connection
        self._run = run
        self._run_many = run_many
        self._answer: Answer | None = None
        self._changed = -1
        self._taken = 0
        self._is_drained = False
        self._closed = False

    @property
    def connection(self) -> Any:
        """The ``Connection`` that made the cursor."""
        return self._connection

    @property
    def description(self) -> list[Column] | None:
        """The columns of the last SELECT; None after other statements.

        A name, a SQL type, which equals one of STRING, NUMBER and DATETIME, and precision and scale of a DECIMAL; the
        other values are None.
        """
        return None if self._answer is None else [_column(field) for field in self._answer.schema]

    @property
    def rowcount(self) -> int:
        """Number of rows of the last SELECT, or rows that the last statement changed; -1 where it is not known."""
        return self._changed if self._answer is None else len(self._answer)

    @property
    def version(self) -> int | None:
        """Number of the version that the last SELECT read; None after other statements."""
        return None if self._answer is None else self._answer.version

    @raises_errors
    def execute(self, operation: str, parameters: Parameters = None) -> Cursor:
        """Execute a statement: a SELECT reads one version, and each other statement makes one.

        Parameters
        ----------
        operation
            A SELECT of ``Database.sql``, BEGIN, COMMIT or ROLLBACK, or a script of ``Database.execute``.
        parameters
            A sequence of values for each ``?``, or a mapping with values for each ``:name``. Default: none.

        Returns
        -------
        Cursor
            The cursor itself.

        Raises
        ------
        DatabaseError
            As the statement; the classes below say which error it is.
        InterfaceError
            The cursor or the connection is closed.

        Examples
        --------
        >>> cursor = fv.dbapi.connect(db).cursor()
        >>> cursor.execute("SELECT qty FROM by_part WHERE part = :part", {"part": "nut"}).fetchone()
        (5,)
        """
        self._check_open()
        self._forget()
        if not isinstance(operation, str):
            raise ProgrammingError(f"a statement must be a str, not {type(operation).__name__}")
        done = self._run(operation, parameters)
        if isinstance(done, Answer):
            self._answer = done
        else:
            self._changed = done
        return self

    @raises_errors
    def executemany(self, operation: str, seq_of_parameters: Iterable[Parameters]) -> Cursor:
        """Execute a statement that changes rows, once for each of several parameters, as one version.

        Parameters
        ----------
        operation
            A statement as of ``execute``, not a SELECT.
        seq_of_parameters
            Parameters as of ``execute``, for each execution.

        Returns
        -------
        Cursor
            The cursor itself. ``rowcount`` is the sum.

        Raises
        ------
        DatabaseError
            As ``execute``; nothing is changed.
        InterfaceError
            The cursor or the connection is closed.

        Examples
        --------
        >>> cursor = fv.dbapi.connect(db).cursor()
        >>> cursor.executemany("INSERT INTO items VALUES (?, ?)", [("bolt", 4), ("nut", 1)]).rowcount
        2
        """
        self._check_open()
        self._forget()
        self._changed = self._run_many(operation, seq_of_parameters)
        return self

    @raises_errors
    def fetchone(self) -> tuple[Any, ...] | None:
        """Fetch the next row.

        Returns
        -------
        tuple[Any, ...] | None
            Python values; None after the last row.

        Raises
        ------
        InterfaceError
            The last statement has no rows, or the cursor is closed.

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().execute("SELECT COUNT(*) FROM items").fetchone()
        (2,)
        """
        return next(iter(self._next(1)), None)

    @raises_errors
    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Fetch the next rows. Raises as ``fetchone``.

        Parameters
        ----------
        size
            Most rows. Default: ``arraysize``.

        Returns
        -------
        list[tuple[Any, ...]]

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().execute("SELECT part FROM by_part ORDER BY part").fetchmany(1)
        [('bolt',)]
        """
        return self._next(self.arraysize if size is None else size)

    @raises_errors
    def fetchall(self) -> list[tuple[Any, ...]]:
        """Fetch all rows that are left. Raises as ``fetchone``.

        Returns
        -------
        list[tuple[Any, ...]]

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().execute("SELECT part FROM by_part ORDER BY part").fetchall()
        [('bolt',), ('nut',)]
        """
        return self._next(None)

    @raises_errors
    def fetch_arrow_table(self) -> pa.Table:
        """Fetch all rows that are left as an Arrow table, as cursors of ADBC do. Raises as ``fetchone``.

        Returns
        -------
        pyarrow.Table

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().execute("SELECT SUM(qty) AS qty FROM items").fetch_arrow_table().to_pydict()
        {'qty': [8]}
        """
        left = self._rows().to_arrow().slice(self._taken)
        self._taken += left.num_rows
        self._is_drained = True
        return left

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing, as PEP 249 allows.

        Parameters
        ----------
        sizes
            Ignored.

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().setinputsizes([10])
        """

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing, as PEP 249 allows.

        Parameters
        ----------
        size, column
            Ignored.

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().setoutputsize(10)
        """

    def close(self) -> None:
        """Forget the rows; a further call of another method raises InterfaceError.

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().close()
        """
        self._closed = True
        self._forget()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows that are left. Raises as ``fetchone``.

        Returns
        -------
        Iterator[tuple[Any, ...]]

        Examples
        --------
        >>> [qty for qty, in fv.dbapi.connect(db).cursor().execute("SELECT qty FROM items ORDER BY qty")]
        [3, 5]
        """
        return self

    def __next__(self) -> tuple[Any, ...]:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next(self, size: int | None) -> list[tuple[Any, ...]]:
        answer = self._rows()
        if self._is_drained:
            return []
        rows = answer.fetchall() if size is None else answer.fetchmany(size)
        self._taken += len(rows)
        return rows

    def _rows(self) -> Answer:
        self._check_open()
        if self._answer is None:
            raise InterfaceError("there are no rows to fetch; execute a SELECT first")
        return self._answer

    def _forget(self) -> None:
        self._answer, self._changed, self._taken, self._is_drained = None, -1, 0, False

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed; make another with Connection.cursor")
        self._connection.check_open()


def _column(field: pa.Field) -> Column:
    """A column of a description."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind):
        return field.name, f"DECIMAL({kind.precision}, {kind.scale})", None, None, kind.precision, kind.scale, None
    name = "TIMESTAMP" if pa.types.is_timestamp(kind) else _TYPES.get(kind, "STRING")
    return field.name, name, None, None, None, None, None
