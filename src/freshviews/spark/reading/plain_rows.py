"""Evaluates a plain SELECT over the contents of a view with Arrow; the result equals Spark's result.

Names are case-insensitive. Numbers are compared by value, strings by their bytes; NaN equals itself and is above all
numbers. A SELECT that Spark might answer differently raises NotPlain, for example one with two columns of one name.

This module avoids ``pa.array`` and ``pa.scalar``: they import pandas, which takes longer than all else here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshviews.catalog.catalog import unknown
from freshviews.expr.like import matcher
from freshviews.spark.reading.plain_select import (
    Column,
    Comparison,
    Condition,
    Constant,
    Count,
    Flag,
    IsNull,
    Item,
    Like,
    Negated,
    NotPlain,
    PlainSelect,
    Sort,
    Star,
    UnknownName,
    Within,
)
from freshviews.types import BIGINT, BOOLEAN
from freshviews.types.columns import decode_array
from freshviews.types.sorting import SortKey, sorted_rows

_COMPARED = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""The digits of the DECIMAL that Spark uses for an integer type."""
_MOST_DIGITS = 38
_EXACT_FLOAT = 2**24
"""Greatest integer up to which FLOAT holds all; Spark may compare FLOAT with an integer as FLOAT."""

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?)?")


def selected(select: PlainSelect, view: str, rows: pa.Table) -> pa.Table:
    """The result over the contents of a view. Raises NotPlain, by the columns of ``rows`` alone.

    Rows are in the order of the contents unless ORDER BY gives another.
    """
    aliases = _aliases(select)
    scope = _Scope(select.alias or view, rows, aliases)
    items = _items(select, scope)
    if select.where is not None:
        rows = rows.filter(_truth(select.where, scope))
        scope = _Scope(scope.name, rows, aliases)
    if isinstance(select.what, Count):
        if select.order:
            raise NotPlain
        count = decode_array(BIGINT, np.array([rows.num_rows]))
        return pa.table([count], names=[select.what.name]).slice(select.offset, select.limit)
    keys = [_sort_key(key, items, scope) for key in select.order]
    if keys:
        rows = rows.take(decode_array(BIGINT, sorted_rows(keys)))
    rows = rows.slice(select.offset, select.limit)
    columns = [_as_spark(rows.column(scope.place(item.column))) for item in items]
    return pa.table(columns, names=[item.name for item in items])


class _Scope:
    """The columns of a view, under the name that it has in the SELECT. ``aliases``: other names that Spark may find."""

    def __init__(self, name: str, rows: pa.Table, aliases: frozenset[str]) -> None:
        self.name = name
        self._rows = rows
        self._aliases = aliases

    def columns(self) -> list[Column]:
        return [Column(None, name) for name in self._rows.schema.names]

    def check(self, table: str | None) -> None:
        if table is not None and table.lower() != self.name.lower():
            raise NotPlain

    def place(self, column: Column) -> int:
        """The position of a column in the view."""
        self.check(column.table)
        found = [i for i, name in enumerate(self._rows.schema.names) if name.lower() == column.name.lower()]
        if not found and column.name.lower() not in self._aliases:
            raise UnknownName(unknown("column", column.name, self._rows.schema.names, self.name))
        if len(found) != 1:
            raise NotPlain
        return found[0]

    def values(self, column: Column) -> pa.ChunkedArray:
        return self._rows.column(self.place(column))


def _aliases(select: PlainSelect) -> frozenset[str]:
    """Names of items that differ from their columns' names, in lower case."""
    items = () if isinstance(select.what, Count | Star) else select.what
    return frozenset(item.name.lower() for item in items if item.name.lower() != item.column.name.lower())


def _items(select: PlainSelect, scope: _Scope) -> Sequence[Item]:
    """The columns of the result; none for COUNT."""
    if isinstance(select.what, Count):
        return ()
    if isinstance(select.what, Star):
        scope.check(select.what.table)
        items: Sequence[Item] = [Item(column, column.name) for column in scope.columns()]
    else:
        items = select.what
    for item in items:
        scope.place(item.column)
    if len({item.name.lower() for item in items}) < len(items):
        raise NotPlain
    return items


def _as_spark(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Spark's TIMESTAMP has a zone, which is UTC."""
    return values.cast(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(values.type) else values


def _sort_key(sort: Sort, items: Sequence[Item], scope: _Scope) -> SortKey:
    """A key of ORDER BY: a position, or the name of a column of the result, which comes first, or of the view."""
    if isinstance(sort.key, int):
        if not 1 <= sort.key <= len(items):
            raise NotPlain
        column = items[sort.key - 1].column
    else:
        column = sort.key
        named = [item.column for item in items if item.name.lower() == column.name.lower()]
        if column.table is None and named:
            column = named[0]
    return scope.values(column), sort.descending, sort.nulls_last


def _truth(condition: Condition, scope: _Scope) -> Any:
    """The truth of the condition for each row: BOOLEAN, with NULL."""
    if isinstance(condition, Flag):
        return _checked(pa.types.is_boolean, scope.values(condition.column))
    if isinstance(condition, Comparison):
        return _comparison(condition.sign, condition.left, condition.right, scope)
    if isinstance(condition, IsNull):
        return pc.is_null(_column(condition.value, scope))
    if isinstance(condition, Within):
        return _within(_column(condition.value, scope), condition.members)
    if isinstance(condition, Like):
        return _like(_checked(pa.types.is_string, _column(condition.value, scope)), condition.pattern)
    if isinstance(condition, Negated):
        return pc.invert(_truth(condition.term, scope))
    return reduce(
        pc.and_kleene if condition.every else pc.or_kleene, [_truth(term, scope) for term in condition.terms]
    )


def _column(value: Column | Constant, scope: _Scope) -> pa.ChunkedArray:
    if isinstance(value, Constant):
        raise NotPlain
    return scope.values(value)


def _checked(kind: Any, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if not kind(values.type):
        raise NotPlain
    return values


def _comparison(sign: str, left: Column | Constant, right: Column | Constant, scope: _Scope) -> Any:
    if isinstance(left, Constant):
        if isinstance(right, Constant):
            raise NotPlain
        return _comparison(_TURNED[sign], right, left, scope)
    values = scope.values(left)
    if isinstance(right, Column):
        return _COMPARED[sign](*_alike(values, scope.values(right), sign))
    if not pa.types.is_floating(values.type):
        values, constants = _with_constants(values, [right], sign)
        return _COMPARED[sign](values, *constants)
    number = _number(right)
    if pa.types.is_float32(values.type) and number == int(number) and abs(number) > _EXACT_FLOAT:
        raise NotPlain
    values = values.cast(pa.float64())
    compared = _COMPARED[sign](values, _scalar(repr(float(number)), pa.float64()))
    return pc.or_kleene(compared, pc.is_nan(values)) if sign in (">", ">=") else compared


def _alike(one: pa.ChunkedArray, other: pa.ChunkedArray, sign: str) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Two columns in a type that holds the values of both."""
    if _is_exact(one.type) and _is_exact(other.type):
        to = _decimal([_shape(one.type), _shape(other.type)])
        return one.cast(to), other.cast(to)
    if one.type != other.type or pa.types.is_floating(one.type) or _is_unordered(one.type, sign):
        raise NotPlain
    return one, other


def _with_constants(
    values: pa.ChunkedArray, constants: Sequence[Constant], sign: str
) -> tuple[pa.ChunkedArray, list[pa.Scalar]]:
    """A column and the constants that it is compared with, in one type."""
    if _is_exact(values.type):
        numbers = [_number(constant) for constant in constants]
        to = _decimal([_shape(values.type), *map(_shape_of_number, numbers)])
        return values.cast(to), [_scalar(f"{number:f}", to) for number in numbers]
    if _is_unordered(values.type, sign):
        raise NotPlain
    return values, [_scalar(_text(constant, values.type, sign), values.type) for constant in constants]


def _is_unordered(kind: pa.DataType, sign: str) -> bool:
    return bool(pa.types.is_boolean(kind)) and sign not in ("=", "<>")


def _scalar(text: str, to: pa.DataType) -> pa.Scalar:
    """A value from its text, which Arrow reads."""
    data = text.encode()
    offsets = np.array([0, len(data)], np.int32)
    return pa.StringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(data))[0].cast(to)


def _text(constant: Constant, kind: pa.DataType, sign: str) -> str:
    """The text of a constant as a value of the column's type. A string beside a DATE or a TIMESTAMP is read as one,
    but not in IN, for which Spark takes the common type of all."""
    of, text = constant.kind, str(constant.value)
    if (pa.types.is_string(kind) and of == "string") or (pa.types.is_boolean(kind) and of == "boolean"):
        return text
    if of == "string" and sign == "IN":
        raise NotPlain
    try:
        if pa.types.is_date(kind) and of in ("string", "date") and _DATE.fullmatch(text):
            return date.fromisoformat(text).isoformat()
        if pa.types.is_timestamp(kind) and of in ("string", "timestamp") and _TIMESTAMP.fullmatch(text):
            return datetime.fromisoformat(text).isoformat(" ", "microseconds")
    except ValueError as error:
        raise NotPlain from error
    raise NotPlain


def _number(constant: Constant) -> Decimal:
    if not isinstance(constant.value, Decimal) or len(constant.value.as_tuple().digits) > _MOST_DIGITS:
        raise NotPlain
    return constant.value


def _is_exact(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _shape(kind: pa.DataType) -> tuple[int, int]:
    """Digits before and after the point of an integer or decimal type."""
    return (kind.precision - kind.scale, kind.scale) if pa.types.is_decimal(kind) else (_DIGITS[kind], 0)


def _shape_of_number(number: Decimal) -> tuple[int, int]:
    """Digits before and after the point, at least those of the type that Spark gives the constant."""
    parts = number.as_tuple()
    scale = -int(parts.exponent)
    whole = len(parts.digits) - scale
    return (whole, scale) if scale else (max(whole, 10 if whole < 10 else 20), 0)


def _decimal(shapes: Sequence[tuple[int, int]]) -> pa.DataType:
    """The DECIMAL that holds all values. Where it is too wide, Spark drops digits."""
    whole, scale = max(shape[0] for shape in shapes), max(shape[1] for shape in shapes)
    if whole + scale > _MOST_DIGITS:
        raise NotPlain
    return pa.decimal128(whole + scale, scale)


def _within(values: pa.ChunkedArray, members: Sequence[Constant]) -> Any:
    if pa.types.is_floating(values.type):
        raise NotPlain
    values, found = _with_constants(values, members, "IN")
    return reduce(pc.or_kleene, [pc.equal(values, one) for one in found])


def _like(values: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """LIKE, computed once per distinct string."""
    matches = matcher(pattern, "\\")
    chunks = []
    for chunk in values.dictionary_encode().chunks:
        codes = np.array([matches(text) for text in chunk.dictionary.to_pylist()], np.int64)
        chunks.append(decode_array(BOOLEAN, codes).take(chunk.indices))
    return pa.chunked_array(chunks, pa.bool_())
