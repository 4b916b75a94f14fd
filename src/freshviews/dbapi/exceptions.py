"""Defines the error classes of PEP 249, and raises them instead of the errors of freshviews."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from freshviews.errors import (
    ArgumentError,
    BatchError,
    CatalogError,
    EvaluationError,
    FreshviewsError,
    OutOfMemory,
    PlanError,
    QueueFull,
    SqlError,
    StoreError,
    SubscriberError,
    UnsupportedSql,
)
from freshviews.tracebacks import end_here


class Warning(FreshviewsError):
    """PEP 249's class of warnings; none is raised.

    Examples
    --------
    >>> issubclass(fv.dbapi.Warning, fv.dbapi.Error)
    False
    """


class Error(FreshviewsError):
    """Every error of ``freshviews.dbapi``.

    Attributes
    ----------
    cause
        The error of ``freshviews.errors`` with its line, row or column; None where a connection or cursor is misused.

    Examples
    --------
    >>> connection = fv.dbapi.connect(db)
    >>> try:
    ...     connection.cursor().execute("SELECT 1 FROM nothing")
    ... except fv.dbapi.Error as error:
    ...     error.cause.line, error.cause.column
    (1, 15)
    """

    cause: FreshviewsError | None = None


class InterfaceError(Error):
    """A connection or cursor is misused, as a closed one, or one with no rows to fetch.

    Examples
    --------
    >>> fv.dbapi.connect(db).cursor().fetchone()
    Traceback (most recent call last):
    freshviews.dbapi.exceptions.InterfaceError: there are no rows to fetch; execute a SELECT first
    """


class DatabaseError(Error):
    """An error of the database; those below it say which.

    Examples
    --------
    >>> issubclass(fv.dbapi.ProgrammingError, fv.dbapi.DatabaseError)
    True
    """


class DataError(DatabaseError):
    """A value does not fit, or an expression cannot be computed for a row: BatchError, EvaluationError.

    Examples
    --------
    >>> issubclass(fv.dbapi.DataError, fv.dbapi.DatabaseError)
    True
    """


class OperationalError(DatabaseError):
    """Memory, the directory or a queue stands in the way: OutOfMemory, StoreError, QueueFull, SubscriberError.

    Examples
    --------
    >>> issubclass(fv.dbapi.OperationalError, fv.dbapi.DatabaseError)
    True
    """


class IntegrityError(DatabaseError):
    """A key, a foreign key or another rule of a table is broken: BatchError with a rule.

    Examples
    --------
    >>> issubclass(fv.dbapi.IntegrityError, fv.dbapi.DatabaseError)
    True
    """


class InternalError(DatabaseError):
    """PEP 249's class of errors inside the database; bugs of freshviews are raised as they are.

    Examples
    --------
    >>> issubclass(fv.dbapi.InternalError, fv.dbapi.DatabaseError)
    True
    """


class ProgrammingError(DatabaseError):
    """A statement or its parameters are wrong: SqlError, CatalogError, PlanError, ArgumentError.

    Examples
    --------
    >>> fv.dbapi.connect(db).cursor().execute("SELECT part FROM itms")
    Traceback (most recent call last):
    freshviews.dbapi.exceptions.ProgrammingError: line 1, column 18: unknown table or view itms; ...
    """


class NotSupportedError(DatabaseError):
    """A statement is valid, and not supported: UnsupportedSql.

    Examples
    --------
    >>> issubclass(fv.dbapi.NotSupportedError, fv.dbapi.DatabaseError)
    True
    """


_KINDS: tuple[tuple[type[FreshviewsError], type[Error]], ...] = (
    (UnsupportedSql, NotSupportedError),
    (EvaluationError, DataError),
    (BatchError, DataError),
    (OutOfMemory, OperationalError),
    (StoreError, OperationalError),
    (QueueFull, OperationalError),
    (SubscriberError, OperationalError),
    (SqlError, ProgrammingError),
    (CatalogError, ProgrammingError),
    (PlanError, ProgrammingError),
    (ArgumentError, ProgrammingError),
)
"""The first class that fits counts."""


def error_for(cause: FreshviewsError) -> Error:
    """The error of PEP 249 that stands for an error of freshviews."""
    if isinstance(cause, Error):
        return cause
    kind = next((kind for error, kind in _KINDS if isinstance(cause, error)), DatabaseError)
    if isinstance(cause, BatchError) and not isinstance(cause, EvaluationError) and _is_of_integrity(cause):
        kind = IntegrityError
    made = kind(str(cause))
    made.cause = cause
    for note in getattr(cause, "__notes__", ()):
        made.add_note(note)
    return made


def _is_of_integrity(cause: BatchError) -> bool:
    is_missing = cause.value is None and cause.rule.endswith("NOT NULL")
    return is_missing or cause.rule.startswith(("PRIMARY KEY", "UNIQUE", "FOREIGN KEY")) or "be stored" in cause.rule


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def raises_errors(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """A public function that raises errors of PEP 249, whose traceback ends at the call."""

    @wraps(function)
    def called(*args: _Given.args, **named: _Given.kwargs) -> _Made:
        try:
            return function(*args, **named)
        except FreshviewsError as cause:
            error = error_for(cause)
        end_here(error)
        raise error

    return called
