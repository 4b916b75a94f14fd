"""Converts codes to JSON. Numbers and booleans become numbers and booleans of JSON, and other values become strings."""

from __future__ import annotations

from decimal import Decimal
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from numpy import int64
from numpy.typing import NDArray

from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import NULL, SqlType
from freshviews.types.values import decoder_for


def in_json(kind: SqlType, codes: NDArray[int64], dictionary: Dictionary) -> list[str]:
    """The JSON of each value of a type."""
    listed: list[int] = codes.tolist()
    if kind.is_integer:
        return ["null" if code == NULL else str(code) for code in listed]
    if kind.name == "STRING":
        texts = dictionary.decode_array(codes).to_pylist()
        return ["null" if text is None else encode_basestring(text) for text in texts]
    decode = decoder_for(kind, dictionary)
    known = {code: _json_of(decode(code)) for code in dict.fromkeys(listed)}
    return [known[code] for code in listed]


def _json_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        if isfinite(value):
            return repr(value)
        return '"NaN"' if value != value else '"Infinity"' if value > 0 else '"-Infinity"'
    return encode_basestring(value.isoformat() if hasattr(value, "isoformat") else str(value))
