"""Replaces the parameters of a script, ``?`` and ``:name``, by the values that the caller passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp

from freshviews.catalog.catalog import near
from freshviews.catalog.timezone import UTC as UTC_ZONE
from freshviews.catalog.timezone import time_zone
from freshviews.errors import ArgumentError, SqlError, shown
from freshviews.expr.nodes import Literal
from freshviews.records import dataclass
from freshviews.sql.expressions.build import VOID, Fault, null
from freshviews.sql.expressions.cast import literal_decimal
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
)

_VALUE = "freshviews_value"
_EPOCH = date(1970, 1, 1)
_MOST_DIGITS = 38


@dataclass(frozen=True)
class Given:
    """The value of a parameter."""

    value: Any


def parameters_of(call: str, positional: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any] | Mapping[str, Any]:
    """The parameters of a call: values, or one sequence or mapping of them, or values by keyword. Raises ArgumentError.
    """
    if positional and named:
        raise ArgumentError(f"{call}: pass values by position for ?, or by name for :name, not both")
    if named.keys() == {"parameters"} and isinstance(named["parameters"], list | tuple | Mapping):
        positional = (named["parameters"],)
    elif named:
        return named
    first = positional[0] if len(positional) == 1 else None
    if isinstance(first, Mapping):
        return first
    if isinstance(first, list | tuple):
        many = first and all(isinstance(one, list | tuple | Mapping) for one in first)
        if many:
            raise ArgumentError(
                f"{call} runs a script once, but {len(first)} rows of values were passed; use Database.insert, upsert, "
                "update or delete for many rows"
            )
        return first
    return positional


def give(text: SqlText, trees: Iterable[Node], parameters: Sequence[Any] | Mapping[str, Any]) -> None:
    """Give each parameter of the statements its value, in the order of the text or by name. Raises SqlError if one has
    no value, or a value no parameter."""
    found = _in(text, trees)
    names = [_name(one) for one in found]
    if any(names) and not all(names):
        raise text.error(found[names.index("")], "the script has both ? and :name; write only one kind")
    if isinstance(parameters, Mapping):
        if found and not any(names):
            raise text.error(found[0], "values are passed by name, but the script has ?; pass a list of values")
        for one in found:
            name = _name(one)
            if name not in parameters:
                raise text.error(one, f"parameter :{name} has no value{near(name, map(str, parameters))}")
            one.meta[_VALUE] = Given(parameters[name])
        unused = [str(name) for name in parameters if name not in names]
        if unused:
            known = f"it has {', '.join(f':{name}' for name in dict.fromkeys(names))}" if names else "it has none"
            raise SqlError(f"the script has no parameter :{unused[0]}; {known}")
        return
    if found and any(names) and len(parameters):
        raise text.error(found[0], f"values are passed by position, but the script has :{names[0]}; pass them by name")
    if len(found) > len(parameters):
        one = found[len(parameters)]
        word = f"parameter :{_name(one)}" if _name(one) else f"parameter {len(parameters) + 1}"
        raise text.error(one, f"{word} has no value; {len(parameters)} of {len(found)} values are given")
    if len(found) < len(parameters):
        advice = "" if found else "; write ? or :name where a value belongs"
        raise SqlError(f"the script has {len(found)} parameters, but {len(parameters)} values were passed{advice}")
    for one, value in zip(found, parameters, strict=True):
        one.meta[_VALUE] = Given(value)


def _in(text: SqlText, trees: Iterable[Node]) -> list[exp.Placeholder]:
    """The parameters in trees, in the order of the text."""
    found = [one for tree in trees for one in tree.find_all(exp.Placeholder)]
    return sorted(found, key=text.at) if len(found) > 1 else found  # A place is found by a walk over the tree.


def _name(node: exp.Placeholder) -> str:
    return str(node.args.get("this") or "")


def given(node: Node) -> Given | None:
    """The value of a node that is a parameter; None for another node."""
    found = node.meta.get(_VALUE) if isinstance(node, exp.Placeholder) else None
    return found if isinstance(found, Given) else None


def given_to(text: SqlText, tree: Node) -> Sequence[Any] | Mapping[str, Any]:
    """The values of all parameters in a tree, in the order of the text or by name."""
    found = _in(text, [tree])
    if any(_name(one) for one in found):
        return {_name(one): one.meta[_VALUE].value for one in found}
    return [one.meta[_VALUE].value for one in found]


def literal_of(text: SqlText, node: Node) -> Literal | None:
    """The constant for a parameter inside an expression; None for a node that is none. Raises SqlError."""
    found = given(node)
    if found is None:
        return None
    try:
        return _literal(found.value)
    except Fault as fault:
        raise text.error(node, f"the value of {text.of(node)}: {fault}") from None


def text_literal(value: str) -> Literal:
    """A text as a constant. Raises Fault."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Fault(f"{shown(value)} is not valid Unicode; pass whole characters") from None
    return Literal(value, STRING)


def without_numpy(value: Any) -> Any:
    """The value of Python for a scalar of NumPy or a missing value of pandas; another value itself."""
    if hasattr(value, "dtype") and hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        found = value.item()
        # A moment in nanoseconds would become a number.
        return value if value.dtype.kind in "mM" and isinstance(found, int) else found
    missing = type(value).__name__ in ("NaTType", "NAType") and type(value).__module__.startswith("pandas.")
    return None if missing else value


def _literal(value: Any) -> Literal:
    """A value of Python as a constant of Spark's SQL. Raises Fault."""
    value = without_numpy(value)
    if value is None:
        return null(VOID)
    if isinstance(value, bool):
        return Literal(value, BOOLEAN)
    if isinstance(value, int):
        if abs(value) >= 2**63:
            return _literal(Decimal(value))  # SQL reads an integer constant of these digits as a decimal, too.
        return Literal(value, INT if -(2**31) <= value < 2**31 else BIGINT)
    if isinstance(value, float):
        return Literal(value, DOUBLE)
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return Literal(bytes(value).decode("latin-1"), BINARY)
    if isinstance(value, Decimal) and value.is_finite():
        if abs(value.adjusted()) > _MOST_DIGITS or -int(value.as_tuple().exponent) > _MOST_DIGITS:
            raise Fault(f"{shown(value)} has more digits than a DECIMAL")
        made = literal_decimal(f"{value.copy_abs():f}")  # abs() would round to 28 digits
        return made if not value.is_signed() else Literal(-int(made.value or 0), made.type)
    if isinstance(value, datetime):
        try:
            naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
        except OverflowError:
            raise Fault(f"{shown(value)} is outside the years 1 to 9999 in UTC") from None
        passed = naive - datetime(1970, 1, 1)
        kind = TIMESTAMP if value.tzinfo is None or time_zone() == UTC_ZONE else TIMESTAMP_LTZ
        return Literal((passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds, kind)
    if isinstance(value, date):
        return Literal((value - _EPOCH).days, DATE)
    if isinstance(value, timedelta):
        micros = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        if abs(micros) >= 2**63:
            raise Fault(f"{shown(value)} does not fit an {DAY_TO_SECOND}")
        return Literal(micros, DAY_TO_SECOND)
    accepted = "None, bool, int, float, str, bytes, Decimal, date, datetime and timedelta are accepted"
    raise Fault(f"{shown(value)} is a {type(value).__name__}; {accepted}")
