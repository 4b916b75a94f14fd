"""Defines the errors that freshviews raises on purpose, under one root class, ``FreshviewsError``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from freshviews.secrets import masked, without_those_of

_LONGEST = 1000
_SHOWN = 200
"""Most characters of a value in a message."""


def shown(value: object) -> str:
    """A value as a message shows it: its ``repr``, cut off where it is long, and NULL for None."""
    if value is None:
        return "NULL"
    try:
        text = repr(value)
    except Exception:  # Python writes no integer of more than 4,300 digits; an object of a user may raise anything
        return f"a value of type {type(value).__name__} that cannot be shown"
    return short(text)


def said(error: BaseException) -> str:
    """The type and the message of an error of a user's code, as a message shows it."""
    try:
        text = str(error)
    except Exception:  # an error of a user may raise anything
        text = "a message that cannot be shown"
    return f"{type(error).__name__}: {text}"


def refused(value: object, reason: object) -> str:
    """A value that a message quotes and why it is refused. What is said of NULL, or of no value, says so itself."""
    return str(reason) if value is None else f"{shown(value)}: {reason}"


def short(text: str) -> str:
    """A piece of text as a message quotes it, cut off where it is long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


class FreshviewsError(Exception):
    """Root of every error raised on purpose by freshviews.

    A message is without secrets, and a very long one without its middle.

    Examples
    --------
    >>> db.close()
    >>> db.tables
    Traceback (most recent call last):
    freshviews.errors.FreshviewsError: the database is closed
    """

    def __init__(self, message: str = "", *args: object) -> None:
        message = masked(message)
        if len(message) > 2 * _LONGEST:
            left_out = len(message) - 2 * _LONGEST
            message = f"{message[:_LONGEST]}... ({left_out} characters) ...{message[-_LONGEST:]}"
        super().__init__(message, *args)


class InterruptedAfterCommit(KeyboardInterrupt):
    """Ctrl-C came too late to stop a change: the batch is in. Any other KeyboardInterrupt of a change leaves nothing.

    Attributes
    ----------
    version
        The version of the batch; its note says the same. Of a script of definitions, the version at which it took
        effect.

    Examples
    --------
    >>> try:
    ...     db.insert("items", [("bolt", 4)])
    ... except fv.InterruptedAfterCommit as late:
    ...     print(late.version)
    2
    """

    def __init__(self, version: int) -> None:
        super().__init__()
        self.version = version


class ArgumentError(FreshviewsError, TypeError, ValueError):
    """An argument of a call is of a wrong type or out of range; the message says what is expected.

    Examples
    --------
    >>> fv.Database(threads=0)
    Traceback (most recent call last):
    freshviews.errors.ArgumentError: threads must be a whole number of 1 or more, not 0
    """


_Made = TypeVar("_Made")


def hiding_secrets(read: Callable[..., _Made]) -> Callable[..., _Made]:
    """A function whose first argument is a script: no message of its errors has a secret of the script."""

    @wraps(read)
    def reading(script: str, *args: object, **named: object) -> _Made:
        try:
            return read(script, *args, **named)
        except FreshviewsError as error:
            error.args = (without_those_of(script, str(error)), *error.args[1:])
            raise

    return reading


class SqlError(FreshviewsError):
    """The SQL text is wrong or asks for what is not supported.

    Attributes
    ----------
    line, column
        1-based position in the text given to ``Database.execute``; 0 where unknown.

    Examples
    --------
    >>> db.execute("CREATE TABLE")
    Traceback (most recent call last):
    freshviews.errors.SqlError: ...
    """

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        self.line = line
        self.column = column
        where = f"line {line}, column {column}: " if line else ""
        super().__init__(where + message)


class UnsupportedSql(SqlError):
    """The SQL is valid but names a construct that is refused at CREATE.

    Examples
    --------
    >>> db.execute("CREATE MATERIALIZED VIEW v AS SELECT part, RAND() AS r FROM items")
    Traceback (most recent call last):
    freshviews.errors.UnsupportedSql: ...
    """


class RuleError(SqlError):
    """The text of a rule is wrong or asks for what is not supported.

    Attributes
    ----------
    line, column
        1-based position in the text given to ``Database.rule``.

    Examples
    --------
    >>> db.rule("few(p) <- items(p).")
    Traceback (most recent call last):
    freshviews.errors.RuleError: ...
    """


class CatalogError(FreshviewsError):
    """A table or view is unknown, exists already, or is still needed by another.

    Examples
    --------
    >>> db.view("by_parts")
    Traceback (most recent call last):
    freshviews.errors.CatalogError: unknown view by_parts; ...
    """


class NameProblem(SqlError, CatalogError):
    """A table or view named in SQL is unknown, exists already, or is still needed.

    Examples
    --------
    >>> db.execute("DROP TABLE items")
    Traceback (most recent call last):
    freshviews.errors.NameProblem: ...
    """


class RingDefinitionError(FreshviewsError):
    """A ring cannot be registered; the message names the ring, the function or the law, and the remedy.

    Examples
    --------
    >>> fv.register_ring(fv.UserRing("SUM", ["BIGINT"], words=1, results="BIGINT", lift=abs))
    Traceback (most recent call last):
    freshviews.errors.RingDefinitionError: ring SUM has the name of an SQL function; give it another name
    """


class BatchError(FreshviewsError):
    """A batch was refused whole; the state is as it was before.

    Attributes
    ----------
    table
        Name of the table.
    row
        0-based position in what was given, None where no one row is at fault.
    rows
        The positions of all rows that are known to be at fault, ``row`` first.
    column
        Name of the column, None where no one column is at fault.
    value
        The value at fault.
    rule
        The rule that is broken, or empty.

    Examples
    --------
    >>> db.delete("items", [("screw", 1)])
    Traceback (most recent call last):
    freshviews.errors.BatchError: ...
    """

    def __init__(
        self,
        message: str,
        *,
        table: str,
        row: int | None = None,
        column: str | None = None,
        value: object = None,
        rule: str = "",
        rows: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.table = table
        self.row = row
        self.rows = rows if rows or row is None else (row,)
        self.column = column
        self.value = value
        self.rule = rule


class EvaluationError(BatchError):
    """An expression of a view cannot be computed for a row of the batch (overflow, division by zero).

    Examples
    --------
    >>> db.execute("CREATE MATERIALIZED VIEW shares AS SELECT part, SUM(60 / qty) AS s FROM items GROUP BY part")
    >>> db.insert("items", [("bolt", 0)])
    Traceback (most recent call last):
    freshviews.errors.EvaluationError: ...
    """


class PlanError(FreshviewsError):
    """A strategy named by the user cannot maintain the view; the message says which can.

    Examples
    --------
    >>> db.rule("few(p) <- items(p, q), q < 4.", {"freshviews.strategy": "top_k"})
    Traceback (most recent call last):
    freshviews.errors.PlanError: ...
    """


class StoreError(FreshviewsError):
    """The directory of a durable database cannot be opened, read or written; the message says which and why.

    Examples
    --------
    >>> db.snapshot()
    Traceback (most recent call last):
    freshviews.errors.StoreError: the database is only in memory; ...
    """


class OtherProgram(StoreError):
    """An image was written by a view with other programs, or by a stored table with another layout.

    Examples
    --------
    >>> issubclass(fv.errors.OtherProgram, fv.StoreError)
    True
    """


class SourceError(FreshviewsError):
    """A source of a pipeline cannot be read, or lacks columns that its table needs.

    Examples
    --------
    >>> fv.spark.Pipeline.from_script(spark, "no_such_file.sql")
    Traceback (most recent call last):
    freshviews.errors.SourceError: no_such_file.sql cannot be read: ...
    """


class NoDuckDB(FreshviewsError):
    """DuckDB, which answers ``Database.sql``, is not installed; the message says how to install it.

    Examples
    --------
    >>> issubclass(fv.errors.NoDuckDB, fv.FreshviewsError)
    True
    """


class SubscriberError(FreshviewsError):
    """A subscriber raised; the batch is committed all the same. The cause is chained.

    Examples
    --------
    >>> subscription = db.view("by_part").subscribe(lambda change: 1 / 0)
    >>> db.insert("items", [("bolt", 4)])
    Traceback (most recent call last):
    freshviews.errors.SubscriberError: ...
    """


class QueueFull(FreshviewsError):
    """A commit would wait too long for an iterator over changes (``View.changes`` with ``full="wait"``).

    Nothing of the batch is applied.

    Examples
    --------
    >>> changes = db.view("by_part").changes("now", size=1, full="wait", timeout=0.1)
    >>> db.insert("items", [("bolt", 4)])
    2
    >>> db.insert("items", [("bolt", 1)])
    Traceback (most recent call last):
    freshviews.errors.QueueFull: view by_part: 2 rows of changes wait for an iterator of full='wait', ...
    """


class OutOfMemory(FreshviewsError, MemoryError):
    """Memory ran out; the batch is refused and the state is as before, unless the message says otherwise.

    Examples
    --------
    >>> full = fv.Database(spare_memory=1 << 60)
    >>> full.execute("CREATE TABLE items (part STRING, qty INT)")
    >>> full.insert("items", [("bolt", 3)])
    Traceback (most recent call last):
    freshviews.errors.OutOfMemory: ...
    """
