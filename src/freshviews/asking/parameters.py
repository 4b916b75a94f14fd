"""Binds values to the parameters ``?`` and ``:name`` of a SELECT, and finds the SQL type of each value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from freshviews.asking.question import Question
from freshviews.errors import ArgumentError, SqlError, shown
from freshviews.sql.statements.parameters import without_numpy
from freshviews.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    SqlType,
    decimal,
)

Parameters = Sequence[Any] | Mapping[str, Any] | None

_MOST_DIGITS = 38


def bound(question: Question, parameters: Parameters) -> tuple[tuple[Any, ...], tuple[SqlType | None, ...]]:
    """The values of the SELECT's parameters in the order of its text, without NULL, and their types, None for NULL.

    Raises SqlError if the SELECT has other parameters, ArgumentError for a value that is none of SQL.
    """
    wanted = places(question)
    names = [name_of(one) for one in wanted]
    if any(names) and not all(names):
        raise question.text.error(wanted[names.index("")], "the SELECT has both ? and :name; write only one kind")
    if any(names):
        given = _by_name(question, wanted, parameters)
    else:
        given = _in_order(len(wanted), parameters)
    pairs = [_value(name, value) for name, value in given]
    return tuple(value for value, kind in pairs if kind is not None), tuple(kind for _, kind in pairs)


def name_of(place: exp.Placeholder) -> str:
    """The name of ``:name``; empty for ``?``."""
    name = str(place.args.get("this") or "")
    return "" if name == "?" else name


def places(question: Question) -> list[exp.Placeholder]:
    """The parameters of the SELECT in the order of its text; of those with one name the first."""
    found = sorted(question.tree.find_all(exp.Placeholder), key=question.text.at)
    first: dict[str, exp.Placeholder] = {}
    for place, one in enumerate(found):
        first.setdefault(name_of(one) or str(place), one)
    return list(first.values())


def _in_order(count: int, parameters: Parameters) -> list[tuple[str, Any]]:
    if isinstance(parameters, Mapping):
        raise SqlError("the parameters are a dict, but the SELECT has no :name; pass a list for ?")
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence | None):
        raise ArgumentError(f"parameters must be a list, a tuple or a dict, not {shown(parameters)}")
    values = list(parameters or ())
    if len(values) != count:
        advice = "" if count else "; write ? or :name where a value belongs"
        raise SqlError(
            f"the SELECT has {count} parameter{'s' * (count != 1)} ?, but {len(values)} "
            f"value{'s were' if len(values) != 1 else ' was'} passed{advice}"
        )
    return [(str(place + 1), value) for place, value in enumerate(values)]


def _by_name(
    question: Question, wanted: Sequence[exp.Placeholder], parameters: Parameters
) -> list[tuple[str, Any]]:
    if not isinstance(parameters, Mapping):
        raise SqlError(f"the SELECT has named parameters; pass a dict with {', '.join(map(name_of, wanted))}")
    names = list(map(name_of, wanted))
    unused = [str(name) for name in parameters if name not in names]
    if unused:
        raise SqlError(f"the SELECT has no parameter :{unused[0]}; it has {', '.join(f':{name}' for name in names)}")
    for name, one in zip(names, wanted, strict=True):
        if name not in parameters:
            raise question.text.error(one, f"parameter :{name} has no value")
    return [(name, parameters[name]) for name in names]


def _value(name: str, value: Any) -> tuple[Any, SqlType | None]:
    """A value of Python, and its type in SQL."""
    value = without_numpy(value)
    if value is None:
        return None, None
    if isinstance(value, bool):
        return value, BOOLEAN
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return int(value), INT
        if -(2**63) <= value < 2**63:
            return int(value), BIGINT
        value = Decimal(value)
    if isinstance(value, float):
        return float(value), DOUBLE
    if isinstance(value, Decimal):
        return _decimal(name, value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ArgumentError(
                f"parameter {name}: {shown(value)} is not valid Unicode; pass whole characters"
            ) from None
        return str(value), STRING
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value), BINARY
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value, TIMESTAMP
        try:
            return value.astimezone(UTC).replace(tzinfo=None), TIMESTAMP_LTZ
        except OverflowError:
            raise ArgumentError(f"parameter {name}: {shown(value)} is outside the years 1 to 9999 in UTC") from None
    if isinstance(value, date):
        return value, DATE
    raise ArgumentError(
        f"parameter {name}: {shown(value)} is a {type(value).__name__}; a str, int, float, bool, bytes, Decimal, date, "
        "datetime or None is accepted"
    )


def _decimal(name: str, value: Decimal) -> tuple[Decimal, SqlType]:
    if not value.is_finite():
        raise ArgumentError(f"parameter {name}: {value} is not a DECIMAL; pass it as a float")
    parts = value.as_tuple()
    scale = max(-int(parts.exponent), 0)
    precision = max(len(parts.digits) + max(int(parts.exponent), 0), scale, 1)
    if precision > _MOST_DIGITS:
        raise ArgumentError(f"parameter {name}: {shown(value)} has {precision} digits; a DECIMAL has at most 38")
    return value, decimal(precision, scale)
