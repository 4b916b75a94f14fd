"""Defines the connections of PEP 249. Statements run immediately. After BEGIN, changes wait for COMMIT."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from freshviews.asking import Answer
from freshviews.dbapi.cursor import Cursor, Parameters
from freshviews.dbapi.exceptions import InterfaceError, NotSupportedError, ProgrammingError, raises_errors
from freshviews.engine.commit.data.counts import RowCounts
from freshviews.engine.database import Database
from freshviews.errors import shown
from freshviews.sql.statements.units import has_rows, units_of
from freshviews.sql.text.many import Given, as_one
from freshviews.sql.text.shape import numbered
from freshviews.wire import Relation

_ENDS = r"(?:\s+(?:WORK|TRANSACTION))?\s*;?\s*"
_BEGIN, _COMMIT, _ROLLBACK = (
    re.compile(rf"\s*(?:{word}){_ENDS}", re.IGNORECASE) for word in ("BEGIN|START", "COMMIT|END", "ROLLBACK|ABORT")
)


class Connection:
    """A database as PEP 249 wants it. ``freshviews.dbapi.connect`` makes one.

    Each statement is a version as soon as ``execute`` returns: it takes effect whole, or not at all, and ``commit`` and
    ``rollback`` have nothing to do. After BEGIN, statements that change rows wait, and ``commit`` executes them all as
    one version; ``rollback`` drops them. Until then their errors are not known, and no SELECT sees them. Threads may
    share a connection, but not a cursor.

    As a context manager, a connection commits, or rolls back where the block raises, and is closed.

    Attributes
    ----------
    database
        The ``Database``.

    Examples
    --------
    >>> with fv.dbapi.connect(db) as connection:
    ...     connection.cursor().execute("SELECT COUNT(*) FROM items").fetchall()
    [(2,)]
    """

    def __init__(self, database: Database, is_own: bool) -> None:
        self.database = database
        self._served = database._served(True)
        self._is_own = is_own
        self._waiting: list[Given] | None = None
        self._closed = False

    @raises_errors
    def cursor(self) -> Cursor:
        """Make a cursor.

        Returns
        -------
        Cursor

        Raises
        ------
        InterfaceError
            The connection is closed.

        Examples
        --------
        >>> fv.dbapi.connect(db).cursor().rowcount
        -1
        """
        self.check_open()
        return Cursor(self, self._run, self._run_many)

    @raises_errors
    def commit(self) -> None:
        """Execute the statements since BEGIN as one version; without BEGIN do nothing: all is committed.

        Raises
        ------
        DatabaseError
            A statement is refused; none of them has an effect.
        InterfaceError
            The connection is closed.

        Examples
        --------
        >>> connection = fv.dbapi.connect(db)
        >>> cursor = connection.cursor().execute("BEGIN")
        >>> cursor = cursor.execute("INSERT INTO items VALUES ('bolt', 4)")
        >>> cursor = cursor.execute("DELETE FROM items WHERE part = ?", ["nut"])
        >>> connection.commit()
        >>> db.version, list(db.view("by_part"))
        (2, [('bolt', 7)])
        """
        self._commit()

    @raises_errors
    def rollback(self) -> None:
        """Drop the statements since BEGIN; without BEGIN do nothing: what was executed is a version, and stays.

        Raises
        ------
        InterfaceError
            The connection is closed.

        Examples
        --------
        >>> connection = fv.dbapi.connect(db)
        >>> cursor = connection.cursor().execute("BEGIN").execute("DELETE FROM items")
        >>> connection.rollback()
        >>> len(db.table("items"))
        2
        """
        self.check_open()
        self._waiting = None

    @raises_errors
    def close(self) -> None:
        """Roll back, and close the database if ``connect`` opened it; a second call does nothing.

        Raises
        ------
        OperationalError
            The last versions could not be brought to the disk.

        Examples
        --------
        >>> fv.dbapi.connect(db).close()
        """
        if not self._closed:
            self._closed, self._waiting = True, None
            if self._is_own:
                self.database.close()

    def check_open(self) -> None:
        """Raise what a call would if the connection is closed.

        Raises
        ------
        InterfaceError
            It is closed.

        Examples
        --------
        >>> fv.dbapi.connect(db).check_open()
        """
        if self._closed:
            raise InterfaceError("the connection is closed; open another with freshviews.dbapi.connect")

    @raises_errors
    def relations(self) -> Sequence[Relation]:
        """List tables and views with their columns and keys.

        Returns
        -------
        Sequence[Relation]

        Raises
        ------
        InterfaceError
            The connection is closed.

        Examples
        --------
        >>> [one.name for one in fv.dbapi.connect(db).relations()]
        ['items', 'by_part']
        """
        self.check_open()
        return self._served.relations()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def _run(self, sql: str, parameters: Parameters) -> Answer | int:
        """The rows of a SELECT, or the number of rows that another statement changed; -1: not known."""
        if _BEGIN.fullmatch(sql):
            if self._waiting is not None:
                raise ProgrammingError("BEGIN: a batch is open already; end it with COMMIT or ROLLBACK")
            self._waiting = []
            return -1
        if _COMMIT.fullmatch(sql):
            return self._commit()
        if _ROLLBACK.fullmatch(sql):
            self._waiting = None
            return -1
        if has_rows(sql):
            return self._served.answer(sql, parameters or ())
        if self._waiting is None:
            return self._changed(self._served.execute(sql, parameters or ()))
        _check_can_wait(sql)
        self._waiting.append(_given(sql, parameters))
        return -1

    def _run_many(self, sql: str, many: Iterable[Parameters]) -> int:
        """Execute a statement for each of several parameters, as one version; the number of rows that it changed."""
        if has_rows(sql):
            raise ProgrammingError("executemany takes only statements that change rows; call execute for each SELECT")
        _check_can_wait(sql)
        if not isinstance(many, Iterable):
            raise ProgrammingError(f"executemany takes an iterable of parameters, not {shown(many)}")
        given = [_given(sql, parameters) for parameters in many]
        if self._waiting is not None:
            self._waiting += given
            return -1
        return self._execute(given) if given else 0

    def _commit(self) -> int:
        self.check_open()
        given, self._waiting = self._waiting, None
        return self._execute(given) if given else -1

    def _execute(self, given: list[Given]) -> int:
        """Execute statements as one version."""
        if all(sql == given[0][0] for sql, _ in given):
            return self._served.update(given[0][0], [values for _, values in given])
        return self._changed(as_one(self._served.execute, given))

    def _changed(self, found: object) -> int:
        return found.rows if isinstance(found, RowCounts) else -1


def _check_can_wait(sql: str) -> None:
    """Raise SqlError for a statement that is wrong, NotSupportedError for one that cannot be in a batch."""
    if any(unit.kind != "data" for unit in units_of(sql)):
        raise NotSupportedError(
            f"between BEGIN and COMMIT only INSERT, DELETE, UPDATE, MERGE and TRUNCATE are accepted, not {shown(sql)}"
        )


def _given(sql: str, parameters: Parameters) -> Given:
    if isinstance(parameters, Mapping):
        text, names = numbered(sql)
        for name in names:
            if name not in parameters:
                raise ProgrammingError(f"parameter :{name} has no value")
        return text, tuple(parameters[name] for name in names)
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Iterable | None):
        raise ProgrammingError(f"parameters must be a list, a tuple or a dict, not {shown(parameters)}")
    return sql, tuple(parameters or ())


@raises_errors
def connect(database: Database | str | os.PathLike[str] | None = None, **options: Any) -> Connection:
    """Connect to a database as PEP 249 wants it.

    Parameters
    ----------
    database
        A ``Database``, or the directory of a durable one, which is opened and closed with the connection. None, the
        default, or ``":memory:"``: a new one in memory.
    options
        Options of ``Database``, for one that is opened.

    Returns
    -------
    Connection

    Raises
    ------
    OperationalError
        The directory cannot be opened.
    ProgrammingError
        An argument is of a wrong type.

    Examples
    --------
    >>> connection = fv.dbapi.connect("shop", sync="interval")
    >>> connection.close()
    """
    if isinstance(database, Database):
        if options:
            raise ProgrammingError(f"{', '.join(options)}: the database is open already; pass options only with a path")
        return Connection(database, False)
    path = None if database == ":memory:" else database
    if path is not None and not isinstance(path, str | os.PathLike):
        raise ProgrammingError(f"connect takes a Database or the path of a directory, not {shown(path)}")
    try:
        return Connection(Database(path, **options), True)
    except TypeError as error:
        if type(error) is not TypeError:
            raise
        raise ProgrammingError(f"connect: {error}") from None
