"""Converts columns of JSON values, as Debezium writes them, to SQL types. Accepted (a text is a JSON string):

=========  ==========================================================================================
BOOLEAN    true, false, 0, 1, text
integers   an integer, text
floats     a number, text (the only form of NaN and Infinity, which are no JSON numbers)
DECIMAL    text, a number, base64 of the unscaled bytes, or {"scale": n, "value": base64}
STRING     a string
DATE       days since 1970-01-01, text
TIMESTAMP  milli-, micro- or nanoseconds since 1970-01-01 by the field's unit, text
=========  ==========================================================================================

If all values of a column have one kind, Arrow converts the column; otherwise it is converted value by value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.stream.connect import FieldReading
from freshviews.stream.pieces import Report, codes_of
from freshviews.stream.text import text_codes, text_reader
from freshviews.types import NULL, Dictionary, SqlType
from freshviews.types.columns import decode_array, encode_arrow
from freshviews.types.values import encoder_for

Codes = npt.NDArray[np.int64]

UNAVAILABLE = "__debezium_unavailable_value"
"""The placeholder that Debezium writes for a large value that an update did not change."""

_EXACT_DIGITS = 15
"""Decimals with this number of digits are distinct as doubles, the type of JSON's numbers."""

_WIDE = Context(prec=100)

_NOT_TOLD = (
    "the database did not send this value, as the update did not change it; give the source table "
    "REPLICA IDENTITY FULL, or have the connector reselect such columns"
)


_BYTES_HINT = (
    "; if the connector writes decimals as bytes (decimal.handling.mode=precise), set decimals='base64', or have "
    "it write strings"
)


def json_column(kind: SqlType, values: list[Any], reading: FieldReading, report: Report) -> pa.Array:
    """The values as ``arrow_type(kind)``, null where one is bad; each bad value is reported by its position."""
    if kind.name == "STRING":
        return _strings(values, report)
    dictionary = Dictionary()
    one = _reader(kind, reading, dictionary)
    codes = codes_of(values, lambda piece: _codes(kind, piece, reading, dictionary), one, report)
    return decode_array(kind, codes, dictionary)


def _strings(values: list[Any], report: Report) -> pa.Array:
    kinds = set(map(type, values)) - {str, type(None)}
    if kinds or UNAVAILABLE in values:
        values = list(values)
        for row, value in enumerate(values):
            if value == UNAVAILABLE:
                report(row, value, _NOT_TOLD)
            elif value is not None and not isinstance(value, str):
                report(row, value, f"STRING accepts a JSON string, not {_name(value)}")
                values[row] = None
    return pa.array(values, pa.string())


def _codes(kind: SqlType, values: list[Any], reading: FieldReading, dictionary: Dictionary) -> Codes:
    """Codes of values of one kind that Arrow reads as the column's; ValueError for other values."""
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return encode_arrow(kind, pa.nulls(len(values)), dictionary)
    if kinds == {str} and not (kind.is_decimal and reading.base64):
        return text_codes(kind, pa.array(values, pa.string()), dictionary)
    if kinds == {bool} and kind.name == "BOOLEAN":
        given = pa.array(values, pa.bool_())
    elif kinds == {int} and (kind.is_integer or kind.is_decimal):
        given = pa.array(values, pa.int64())
    elif kinds <= {int, float} and kind.is_float:
        given = pa.array(values, pa.float64())
    elif kinds == {int} and kind.name == "DATE":
        given = pa.array(values, pa.date32())
    elif kinds == {int} and kind.name == "TIMESTAMP" and reading.unit is not None:
        given = pa.array(values, pa.timestamp(reading.unit))
    else:
        raise ValueError("the values have several types")
    return encode_arrow(kind, given, dictionary)


def _reader(kind: SqlType, reading: FieldReading, dictionary: Dictionary) -> Callable[[Any], int]:
    """A function that reads one value, not None, as a code."""
    encode, text = encoder_for(kind, False, dictionary), _text_reader(kind, dictionary)

    def read(value: Any) -> int:
        if kind.is_decimal and isinstance(value, str | dict) and (reading.base64 or isinstance(value, dict)):
            return encode(_decimal(value, kind.scale if reading.scale is None else reading.scale))
        if isinstance(value, str):
            return text(value)
        if isinstance(value, bool) == (kind.name == "BOOLEAN"):
            return encode(_native(kind, value, reading))
        if value in (0, 1) and kind.name == "BOOLEAN":
            return int(value)
        raise TypeError(f"{kind} does not accept a JSON {_name(value)}")

    return read


def _text_reader(kind: SqlType, dictionary: Dictionary) -> Callable[[str], int]:
    read = text_reader(kind, dictionary)

    def read_told(text: str) -> int:
        if text == UNAVAILABLE:
            raise ValueError(_NOT_TOLD)
        try:
            return read(text)
        except ValueError as error:
            raise ValueError(f"{error}{_BYTES_HINT if kind.is_decimal else ''}") from None

    return read_told


def _native(kind: SqlType, value: Any, reading: FieldReading) -> Any:
    if isinstance(value, int) and kind.name in ("DATE", "TIMESTAMP") and not NULL < value < 2**63:
        raise OverflowError(f"{kind} accepts values that fit 64 bits")  # The least one is NaT to NumPy.
    if isinstance(value, int) and kind.name == "DATE":
        return np.datetime64(value, "D")
    if isinstance(value, int) and kind.name == "TIMESTAMP":
        if reading.unit is None:
            raise ValueError(
                "the unit of this timestamp is not known; set timestamps='ms', 'us' or 'ns', or have the connector "
                "write the schema beside the payload"
            )
        return np.datetime64(value, reading.unit)
    if isinstance(value, float) and kind.is_decimal:
        if abs(value) >= 10 ** (_EXACT_DIGITS - kind.scale):
            raise ValueError(
                f"a JSON number is exact only to {_EXACT_DIGITS} digits, so {kind} needs strings; have the source "
                "write strings"
            )
        return Decimal(repr(value))
    return value


def _decimal(value: Any, scale: int) -> Decimal:
    try:
        if isinstance(value, dict):
            scale, value = int(value["scale"]), value["value"]
        digits = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
        return Decimal(digits).scaleb(-scale, _WIDE)
    except (ValueError, TypeError, KeyError, ArithmeticError):
        raise ValueError("a decimal in base64 must be the bytes of its unscaled value") from None


def _name(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return {int: "number", float: "number", str: "string", list: "array", dict: "object"}.get(type(value), "value")
