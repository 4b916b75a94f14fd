"""Defines the type objects of PEP 249, such as ``NUMBER``, and its functions that make dates and times."""

from __future__ import annotations

from datetime import UTC, date, datetime, time


class TypeObject:
    """A set of SQL types, which equals the type code of each.

    Parameters
    ----------
    names
        Names of the types.

    Examples
    --------
    >>> fv.dbapi.NUMBER == "DECIMAL(10, 2)", fv.dbapi.STRING == "INT"
    (True, False)
    """

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other.partition("(")[0] in self._names
        return isinstance(other, TypeObject) and self._names == other._names

    def __hash__(self) -> int:
        return hash(self._names)

    def __repr__(self) -> str:
        return f"TypeObject({', '.join(map(repr, sorted(self._names)))})"


STRING = TypeObject("STRING")
BINARY = TypeObject("BINARY")
NUMBER = TypeObject("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "BOOLEAN")
DATETIME = TypeObject("DATE", "TIMESTAMP")
ROWID = TypeObject()

Date, Time, Timestamp, Binary = date, time, datetime, bytes


def DateFromTicks(ticks: float) -> date:
    """The date of a number of seconds since 1970, in UTC.

    Parameters
    ----------
    ticks
        Seconds.

    Returns
    -------
    date

    Examples
    --------
    >>> fv.dbapi.DateFromTicks(86_400)
    datetime.date(1970, 1, 2)
    """
    return datetime.fromtimestamp(ticks, UTC).date()


def TimeFromTicks(ticks: float) -> time:
    """The time of day of a number of seconds since 1970, in UTC.

    Parameters
    ----------
    ticks
        Seconds.

    Returns
    -------
    time

    Examples
    --------
    >>> fv.dbapi.TimeFromTicks(90)
    datetime.time(0, 1, 30)
    """
    return datetime.fromtimestamp(ticks, UTC).time()


def TimestampFromTicks(ticks: float) -> datetime:
    """The timestamp of a number of seconds since 1970, in UTC, without a zone as in SQL.

    Parameters
    ----------
    ticks
        Seconds.

    Returns
    -------
    datetime

    Examples
    --------
    >>> fv.dbapi.TimestampFromTicks(90)
    datetime.datetime(1970, 1, 1, 0, 1, 30)
    """
    return datetime.fromtimestamp(ticks, UTC).replace(tzinfo=None)
