"""Converts whole Arrow columns to contiguous arrays of codes, and back. A code is the int64 that represents a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.types import arrow_compute as pc
from freshviews.types.arrow_check import without_views
from freshviews.types.calendar import GREATEST_DAY, LEAST_DAY, MICROS_PER_DAY
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import BINARY, NAN, NULL, STRING, SqlType, value_of_text
from freshviews.types.values import NULL_REFUSED, BadValue, encoder_for

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

MULTIPLICITY = "_multiplicity"
"""Name of the column of signed multiplicities, in inputs and results."""

_LEAST = NULL + 1
_GREATEST = 2**63 - 1
_PER_UNIT = {"s": 10**6, "ms": 10**3, "us": 1}


def arrow_type(kind: SqlType) -> pa.DataType:
    """The Arrow type of returned columns of a SQL type."""
    if kind.is_decimal:
        return pa.decimal128(kind.precision, kind.scale)
    if kind.is_interval:
        return pa.int32() if kind.is_months else pa.duration("us")
    if kind == BINARY:
        return pa.binary()
    return {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("us"),
    }[kind.name]


def encode_arrow(
    kind: SqlType, array: pa.Array | pa.ChunkedArray, dictionary: Dictionary, *, nullable: bool = True
) -> Codes:
    """Codes of a column, contiguous; the caller must not write to them.

    Raises ``TypeError`` if no value of the column's Arrow type is accepted, and ``BadValue`` with the first refused row
    (its value is None for a null).

    A column is accepted if all its values fit. For example, an int64 column fits INT if its values are in range, and a
    column of nanoseconds fits TIMESTAMP if they are whole microseconds. ``freshviews.types.values`` defines the
    accepted values, and the text of errors.

    A column without nulls is not copied if its words equal the codes; then the codes share its memory. This holds for
    the types int64, float64, timestamp[us], duration[us] and aligned decimals.
    """
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks != 1:
            return _encode_chunks(kind, array, dictionary, nullable)
        array = array.chunk(0)
    if pa.types.is_dictionary(array.type) and kind != STRING:
        array = array.dictionary_decode()
    if array.null_count and not nullable:
        row = int(np.argmax(array.is_null().to_numpy(zero_copy_only=False)))
        raise BadValue(row, None, NULL_REFUSED)
    if pa.types.is_null(array.type):
        return np.full(len(array), NULL, np.int64)
    if kind == BINARY:
        return dictionary.encode_arrow(texts_of_bytes(array))
    if kind.name == "STRING":
        return _strings(array, dictionary)
    if kind.wide:
        return _wide_decimals(kind, array, dictionary)
    codes, bad = _convert(kind, array)
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if bad is not None:
        if nulls is not None:
            bad &= ~nulls
        if bad.any():
            raise _refusal(kind, array, int(np.argmax(bad)), dictionary)
    if nulls is not None:
        codes = np.where(nulls, NULL, codes)
    return np.ascontiguousarray(codes)


def _encode_chunks(kind: SqlType, array: pa.ChunkedArray, dictionary: Dictionary, nullable: bool) -> Codes:
    parts: list[Codes] = []
    start = 0
    for chunk in array.chunks:
        try:
            parts.append(encode_arrow(kind, chunk, dictionary, nullable=nullable))
        except BadValue as error:
            raise BadValue(start + error.row, error.value, error.reason) from None
        start += len(chunk)
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _refusal(kind: SqlType, array: pa.Array, row: int, dictionary: Dictionary) -> BadValue:
    try:
        value = array[row].as_py()
    except (ValueError, OverflowError):
        return BadValue(row, f"{array[row].value} as {array.type}", _GENERIC[kind.name])
    try:
        encoder_for(kind, True, dictionary)(value)
    except (TypeError, ValueError, OverflowError) as error:
        return BadValue(row, value, str(error))
    return BadValue(row, value, _GENERIC.get(kind.name, f"it does not fit {kind}"))


# For values that Python cannot represent: nanoseconds without pandas, years past 9999.
_GENERIC = {
    "TIMESTAMP": "TIMESTAMP accepts whole microseconds that fit 64 bits",
    "DATE": "DATE accepts no time of day",
    "INTERVAL": "an INTERVAL accepts whole microseconds that fit 64 bits",
}


def _strings(array: pa.Array, dictionary: Dictionary) -> Codes:
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise TypeError(f"STRING accepts a column of strings, not of {array.type}")
    try:
        return dictionary.encode_arrow(array)
    except UnicodeDecodeError:
        if pa.types.is_dictionary(array.type):
            # The invalid string may be in the dictionary without being used by a row.
            return _strings(array.dictionary_decode(), dictionary)
        row = next(i for i, value in enumerate(array) if not _is_text(value))
        raise BadValue(row, array[row].as_buffer().to_pybytes(), "it is not valid UTF-8 text") from None


def texts_of_bytes(array: pa.Array) -> pa.Array:
    """The texts that code the values of a column of bytes. Raises TypeError for another column."""
    kind = array.type
    if pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        array = array.cast(pa.large_binary())
    elif not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        raise TypeError(f"BINARY accepts a column of binary values, not of {kind}")
    distinct = array.dictionary_encode()
    texts = [value.decode("latin-1") for value in distinct.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(distinct.indices, pa.array(texts, pa.large_string()))


def _decode_bytes(codes: Codes, dictionary: Dictionary) -> pa.Array:
    distinct, places = np.unique(codes, return_inverse=True)
    texts = dictionary.decode_array(distinct).to_pylist()
    values = pa.array([None if text is None else text.encode("latin-1") for text in texts], pa.binary())
    return values.take(pa.array(places.reshape(-1)))


def characters_over(array: pa.Array | pa.ChunkedArray, length: int) -> dict[int, int]:
    """Rows of a column of strings, or of nulls, with more than ``length`` characters, and how many each has."""
    array = without_views(array)
    if not pa.types.is_string(array.type):
        array = array.cast(pa.large_string())
    # A string has at most as many characters as bytes, and two offsets give the number of bytes.
    if (pc.max(pc.binary_length(array)).as_py() or 0) <= length:
        return {}
    counts = pc.fill_null(pc.utf8_length(array), 0).to_numpy(zero_copy_only=False)
    return {int(row): int(counts[row]) for row in np.flatnonzero(counts > length)}


def _is_text(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return False
    return True


def _convert(kind: SqlType, array: pa.Array) -> tuple[Codes, Mask | None]:
    """Codes, arbitrary in null and bad rows, and a mask of bad rows; the mask is None if no row is bad.

    A null row may be marked bad, too.
    """
    given = array.type
    if kind.is_integer and pa.types.is_integer(given):
        return _whole(array, 1, *kind.bounds)
    if kind.is_float and pa.types.is_floating(given):
        with np.errstate(invalid="ignore"):  # Signalling NaN.
            return _floats(kind, _primitive(array).astype(np.float64, copy=False))
    if kind.is_float and pa.types.is_integer(given):
        return _floats_of_integers(kind, array)
    if kind.is_decimal and pa.types.is_integer(given):
        return _whole(array, 10**kind.scale, *kind.bounds)
    if kind.is_decimal and pa.types.is_decimal(given) and _has_usual_scale(given):
        return _decimals(kind, array)
    if kind.name == "BOOLEAN" and pa.types.is_boolean(given):
        return array.cast(pa.uint8()).fill_null(0).to_numpy().astype(np.int64), None
    if kind.is_months and pa.types.is_integer(given):
        return _whole(array, 1, *kind.bounds)
    if (kind.name == "TIMESTAMP" and pa.types.is_timestamp(given)) or (
        kind.is_interval and not kind.is_months and pa.types.is_duration(given)
    ):
        if given.unit == "ns":
            return _divide(_primitive(array), 1000)
        return _scale(_primitive(array), _PER_UNIT[given.unit], _LEAST, _GREATEST)
    if kind.name == "TIMESTAMP" and pa.types.is_date32(given):
        return _scale(_primitive(array).astype(np.int64), MICROS_PER_DAY, _LEAST, _GREATEST)
    if kind.name == "DATE" and pa.types.is_date32(given):
        return _primitive(array).astype(np.int64), None
    if kind.name == "DATE" and pa.types.is_date64(given):
        return _whole_days(array, "ms")
    if kind.name == "DATE" and pa.types.is_timestamp(given) and given.tz is None:
        return _whole_days(array, given.unit)
    accepted = "integers, numbers of months" if kind.is_months else _ACCEPTED[kind.name]
    raise TypeError(f"{kind} accepts a column of {accepted}, not of {given}")


def _has_usual_scale(decimal: pa.DataType) -> bool:
    """True if Arrow can write the values of a decimal type; its schemas may have any scale."""
    return bool(abs(decimal.scale) <= (76 if decimal.bit_width == 256 else 38))


_ACCEPTED = {
    "BOOLEAN": "booleans",
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), "integers"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "floats or integers"),
    "DECIMAL": "decimals or integers",
    "DATE": "dates, or timestamps without a zone at midnight",
    "TIMESTAMP": "timestamps or dates",
    "INTERVAL": "durations",
}

_WIDTHS = {8: "1", 16: "2", 32: "4", 64: "8"}


def _primitive(array: pa.Array) -> npt.NDArray[Any]:
    """The values of a fixed-width array without a copy; arbitrary where null."""
    kind = array.type
    letter = "f" if pa.types.is_floating(kind) else "u" if pa.types.is_unsigned_integer(kind) else "i"
    item = np.dtype(letter + _WIDTHS[kind.bit_width])
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, item)
    return np.frombuffer(data, item, len(array), array.offset * item.itemsize)


def _whole(array: pa.Array, factor: int, low: int, high: int) -> tuple[Codes, Mask | None]:
    values = _primitive(array)
    if values.dtype == np.uint64:
        bad = values > np.uint64(_GREATEST)
        codes, wide = _scale(values.view(np.int64), factor, low, high)
        return codes, _either(bad, wide)
    return _scale(values.astype(np.int64, copy=False), factor, low, high)


def _scale(values: Codes, factor: int, low: int, high: int) -> tuple[Codes, Mask | None]:
    """``values * factor``, and a mask of results that are outside ``low`` to ``high``, or are NULL."""
    low, high = max(low, _LEAST), min(high, _GREATEST)
    if factor > _GREATEST:  # only 0 fits: no other int64 is a multiple of the factor
        return np.zeros_like(values), values != 0
    least, greatest = -(-low // factor), high // factor
    bad = None
    if len(values) and (int(values.min()) < least or int(values.max()) > greatest):
        bad = (values < least) | (values > greatest)
    return (values if factor == 1 else values * np.int64(factor)), bad


def _divide(values: Codes, divisor: int) -> tuple[Codes, Mask | None]:
    """``values / divisor``, and a mask of results that are not whole."""
    quotient, rest = np.divmod(values, np.int64(divisor))
    bad = rest != 0
    return quotient, bad if bad.any() else None


def _whole_days(array: pa.Array, unit: str) -> tuple[Codes, Mask | None]:
    per_day = MICROS_PER_DAY * 1000 if unit == "ns" else MICROS_PER_DAY // _PER_UNIT[unit]
    codes, broken = _divide(_primitive(array), per_day)
    return codes, _either(broken, _scale(codes, 1, LEAST_DAY, GREATEST_DAY)[1])


def _either(one: Mask | None, other: Mask | None) -> Mask | None:
    """The union of two masks; None is an empty one."""
    if one is None or other is None:
        return other if one is None else one
    return one | other


def _floats(kind: SqlType, values: npt.NDArray[np.float64]) -> tuple[Codes, Mask | None]:
    bad: Mask | None = None
    if kind.name == "FLOAT":
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = values.astype(np.float32).astype(np.float64)
        lost = np.isinf(rounded) & ~np.isinf(values)
        bad = lost if lost.any() else None
        values = rounded
    codes = values.view(np.int64)
    negative_zero, nan = codes == NULL, np.isnan(values)
    if negative_zero.any() or nan.any():
        codes = np.where(nan, NAN, np.where(negative_zero, 0, codes))
    return codes, bad


def _floats_of_integers(kind: SqlType, array: pa.Array) -> tuple[Codes, Mask | None]:
    values = _primitive(array)
    exact = 2**24 if kind.name == "FLOAT" else 2**53
    codes, _ = _floats(kind, values.astype(np.float64))
    if values.itemsize <= 2 or not len(values) or -exact <= int(values.min()) <= int(values.max()) <= exact:
        return codes, None
    # Rare, so Python compares exactly.
    numbers = codes.view(np.float64).tolist()
    pairs = zip(numbers, values.tolist(), strict=True)
    return codes, np.fromiter((int(number) != value for number, value in pairs), np.bool_, len(values))


def _decimals(kind: SqlType, array: pa.Array) -> tuple[Codes, Mask | None]:
    values, wide = _low_words(array)
    shift = kind.scale - array.type.scale
    if shift >= 0:
        values, bad = _scale(values, 10**shift, *kind.bounds)
        return values, _either(bad, wide)
    if wide is not None or shift < -18:
        return _decimals_one_by_one(kind, array)
    values, bad = _divide(values, 10**-shift)
    _, misfit = _scale(values, 1, *kind.bounds)
    return values, _either(bad, misfit)


def _wide_decimals(kind: SqlType, array: pa.Array, dictionary: Dictionary) -> Codes:
    given = array.type
    if not (pa.types.is_integer(given) or (pa.types.is_decimal(given) and _has_usual_scale(given))):
        raise TypeError(f"{kind} accepts a column of {_ACCEPTED['DECIMAL']}, not of {given}")
    encode = encoder_for(kind, True, dictionary)
    codes = np.empty(len(array), np.int64)
    known: dict[Any, int] = {}
    for row, value in enumerate(array.to_pylist()):
        code = known.get(value)
        if code is None:
            try:
                code = known[value] = encode(value)
            except (ValueError, OverflowError) as error:
                raise BadValue(row, value, str(error)) from None
        codes[row] = code
    return codes


def _decode_wide(kind: SqlType, codes: Codes, dictionary: Dictionary) -> pa.Array:
    distinct, places = np.unique(codes, return_inverse=True)
    words = np.zeros((len(distinct), 2), np.uint64)
    for i, text in enumerate(dictionary.decode_array(distinct).to_pylist()):
        if text is not None:
            value = value_of_text(text)
            words[i] = value & _LOW_WORD, (value >> 64) & _LOW_WORD
    valid = codes != NULL
    nulls = len(codes) - int(np.count_nonzero(valid))
    validity = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    data = np.ascontiguousarray(words[places.reshape(-1)])
    return pa.Array.from_buffers(arrow_type(kind), len(codes), [validity, pa.py_buffer(data)], nulls)


_LOW_WORD = 2**64 - 1


def _low_words(array: pa.Array) -> tuple[Codes, Mask | None]:
    """The unscaled values of decimals of any width, and a mask of those that do not fit a word."""
    if array.type.bit_width <= 64:
        return _primitive(array).astype(np.int64, copy=False), None
    width = array.type.bit_width // 64
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.empty(0, np.int64), None
    words = np.frombuffer(data, np.int64, len(array) * width, array.offset * 8 * width).reshape(-1, width)
    low = np.ascontiguousarray(words[:, 0])
    # Little-endian: a value fits its first word if every other word repeats the sign.
    wide = (words[:, 1:] != (low >> 63)[:, None]).any(axis=1)
    return low, wide if wide.any() else None


def _decimals_one_by_one(kind: SqlType, array: pa.Array) -> tuple[Codes, Mask]:
    """Decimals wider than a word, whose trailing zeros must be removed before they fit."""
    codes, bad = np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)
    encode = encoder_for(kind, True, Dictionary())
    for row, value in enumerate(array.to_pylist()):
        try:
            codes[row] = encode(value)
        except (ValueError, OverflowError):
            bad[row] = True
    return codes, bad


def decode_array(
    kind: SqlType, codes: Codes, dictionary: Dictionary | None = None, nullable: bool = True
) -> pa.Array:
    """The values of codes, of type ``arrow_type(kind)``; STRING and BINARY need ``dictionary``.

    If not ``nullable``, codes are not searched for NULLs. BIGINT, DOUBLE, TIMESTAMP and an INTERVAL of days to
    seconds share the memory of contiguous ``codes``.
    """
    if kind.name == "STRING":
        if dictionary is None:
            raise ValueError(f"codes of {kind} need a dictionary; pass dictionary=")
        return _decode_bytes(codes, dictionary) if kind == BINARY else dictionary.decode_array(codes)
    if kind.wide:
        if dictionary is None:
            raise ValueError(f"codes of {kind} need a dictionary; pass dictionary=")
        return _decode_wide(kind, codes, dictionary)
    codes = np.ascontiguousarray(codes)
    # NULL is the least code.
    whole = len(codes) == 0 or not nullable or codes.min() != NULL
    valid = np.True_ if whole else codes != NULL
    nulls = 0 if whole else len(codes) - int(np.count_nonzero(valid))
    validity = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
    made = arrow_type(kind)
    data: npt.NDArray[Any] = codes
    if kind.name == "BOOLEAN":
        data = np.packbits(codes == 1, bitorder="little")
    elif kind.is_decimal:
        data = np.empty((len(codes), 2), np.int64)
        data[:, 0] = codes
        data[:, 1] = codes >> 63
    elif kind.name == "FLOAT":
        data = np.where(valid, codes, 0).view(np.float64).astype(np.float32)
    elif made.bit_width < 64:
        data = codes.astype(f"i{made.bit_width // 8}")
    return pa.Array.from_buffers(made, len(codes), [validity, pa.py_buffer(data)], nulls)
