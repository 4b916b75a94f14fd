"""Converts text to typed columns, for CSV files and Debezium's JSON; a value is never rounded."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.expr.casts import (
    string_to_bool,
    string_to_decimal,
    string_to_float,
    string_to_int,
    whole_date,
    whole_timestamp,
)
from freshviews.expr.intervals import string_to_interval
from freshviews.types import Dictionary, SqlType
from freshviews.types import arrow_compute as pc
from freshviews.types.columns import arrow_type, encode_arrow
from freshviews.types.values import encoder_for

Codes = npt.NDArray[np.int64]


def text_codes(kind: SqlType, texts: pa.Array, dictionary: Dictionary) -> Codes:
    """Codes of a column of texts, for all types but STRING. Raises ValueError if Arrow cannot read one of them.

    Arrow reads the common spellings, ``text_reader`` all that are accepted. Spellings that only Arrow accepts are
    refused by ``text_reader``.
    """
    return encode_arrow(kind, _ARROW.get(kind.name, _cast)(kind, texts), dictionary)


def _cast(kind: SqlType, texts: pa.Array) -> pa.Array:
    return texts.cast(arrow_type(kind))


def _integers(kind: SqlType, texts: pa.Array) -> pa.Array:
    if pc.any(pc.match_substring(texts, "x", ignore_case=True)).as_py():
        raise ValueError("hexadecimal integers are not accepted")
    return _cast(kind, texts)


def _decimals(kind: SqlType, texts: pa.Array) -> pa.Array:
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest + kind.scale > 38 or pc.any(pc.match_substring(texts, "e", ignore_case=True)).as_py():
        raise ValueError("Arrow may read the decimal wrongly")
    return _cast(kind, texts)


def _floats(kind: SqlType, texts: pa.Array) -> pa.Array:
    return texts.cast(pa.float64())


def _timestamps(kind: SqlType, texts: pa.Array) -> pa.Array:
    if pc.any(pc.equal(pc.binary_length(texts), len("2026-01-01T10"))).as_py():
        raise ValueError("a time without minutes is not accepted")
    try:
        return _cast(kind, texts)
    except pa.ArrowInvalid:
        return texts.cast(pa.timestamp("us", "UTC"))


def _intervals(kind: SqlType, texts: pa.Array) -> pa.Array:
    raise ValueError("Arrow reads no texts of intervals")


_ARROW: dict[str, Callable[[SqlType, pa.Array], pa.Array]] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), _integers),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _floats),
    "DECIMAL": _decimals,
    "TIMESTAMP": _timestamps,
    "INTERVAL": _intervals,
}


def text_reader(kind: SqlType, dictionary: Dictionary) -> Callable[[str], int]:
    """A function that reads one text as a code, for all types but STRING; its ValueError or OverflowError names the
    accepted forms."""
    read, encode = _READERS[kind.name if not kind.is_integer else "BIGINT"], encoder_for(kind, False, dictionary)
    return lambda text: encode(read(kind, text))


def _read_integer(kind: SqlType, text: str) -> Any:
    return string_to_int(text, *kind.bounds)


def _read_decimal(kind: SqlType, text: str) -> Any:
    string_to_decimal(text, 38, 0)  # refuses text that is not a number: Decimal itself accepts more
    return Decimal(text.strip())


def _read_interval(kind: SqlType, text: str) -> Any:
    code = string_to_interval(text, kind.precision, kind.scale)
    return code if kind.is_months else np.timedelta64(code, "us")


_READERS: dict[str, Callable[[SqlType, str], Any]] = {
    "BOOLEAN": lambda kind, text: string_to_bool(text),
    "BIGINT": _read_integer,
    "FLOAT": lambda kind, text: string_to_float(text),
    "DOUBLE": lambda kind, text: string_to_float(text),
    "DECIMAL": _read_decimal,
    "DATE": lambda kind, text: np.datetime64(whole_date(text), "D"),
    "INTERVAL": _read_interval,
    "TIMESTAMP": lambda kind, text: np.datetime64(whole_timestamp(text), "us"),
}
