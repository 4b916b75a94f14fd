"""Converts Python values to codes and back, one at a time. The accepted values, besides None:

=========  ============================================================================================
BOOLEAN    bool
integers   int within the type's range; BIGINT of -2**63 is refused: it is the code of NULL
FLOAT      float, rounded to the nearest float32 if that is finite; int that is exactly a float32
DOUBLE     float; int that is exactly a double
DECIMAL    Decimal and int that need no more digits than the type has: 12.300 fits scale 2, 12.345 does
           not; never a float: 12.3 is not a decimal
STRING     str of valid Unicode
BINARY     bytes, bytearray, memoryview
DATE       datetime.date; datetime without a zone at midnight; numpy.datetime64 of a whole day
TIMESTAMP  datetime; one with a zone is converted to UTC; date at midnight; numpy.datetime64 and
           pandas.Timestamp of whole microseconds
INTERVAL   of days to seconds: datetime.timedelta; numpy.timedelta64 and pandas.Timedelta of whole microseconds;
           of years and months: int, the number of months
=========  ============================================================================================
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import numpy as np

from freshviews.errors import refused
from freshviews.types.calendar import GREATEST_DAY, LEAST_DAY, MICROS_PER_DAY, MICROS_PER_SECOND
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import BINARY, NAN, NULL, RESERVED, SqlType, text_of, value_of_text

Encoder = Callable[[Any], int]
Decoder = Callable[[int], Any]

_TO_BITS = struct.Struct("<d").pack
_FROM_BITS = struct.Struct("<q").unpack
_TO_SINGLE = struct.Struct("<f").pack
_FROM_SINGLE = struct.Struct("<f").unpack
_TO_WORD = struct.Struct("<q").pack
_FROM_WORD = struct.Struct("<d").unpack

_EPOCH_ORDINAL = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EXACT = Context(prec=60, Emax=999_999, Emin=-999_999, traps=[Inexact, InvalidOperation])


class BadValue(ValueError):
    """A refused value of a column: ``row`` (its position), ``value`` and ``reason``."""

    def __init__(self, row: int, value: object, reason: str) -> None:
        super().__init__(f"row {row}: {refused(value, reason)}")
        self.row = row
        self.value = value
        self.reason = reason


def encoder_for(
    kind: SqlType, nullable: bool, dictionary: Dictionary, read: Callable[[str], int] | None = None
) -> Encoder:
    """The function that encodes the values of one column; it refuses NULLs if not ``nullable``.

    ``read`` reads a text as a code of DATE or TIMESTAMP; without it, text is refused.

    A NumPy scalar is accepted if the Python value that it equals is accepted; pandas.NA, NaT and numpy's NaT count as
    NULL. A refused value raises a ``TypeError`` (the type is never accepted), an ``OverflowError`` (out of range) or a
    ``ValueError`` (this value is not accepted). The message is only the reason, without the value.
    """
    null = _null_code if nullable else _refuse_null
    if kind.is_integer:
        return _integer_encoder(kind, null)
    if kind.is_decimal:
        return _wide_encoder(kind, dictionary.encode, null) if kind.wide else _decimal_encoder(kind, null)
    if kind.is_float:
        return _float_encoder(kind, null)
    if kind == BINARY:
        return _bytes_encoder(dictionary.encode, null)
    if kind.name == "STRING":
        return _string_encoder(dictionary, null)
    if kind.name == "BOOLEAN":
        return _boolean_encoder(null)
    if kind.is_interval:
        return _months_encoder(kind, null) if kind.is_months else _duration_encoder(kind, null)
    return _date_encoder(null, read) if kind.name == "DATE" else _timestamp_encoder(null, read)


def limited(encode: Encoder, length: int) -> Encoder:
    """The encoder, limited to strings of at most ``length`` characters."""

    def encode_short(value: Any) -> int:
        if isinstance(value, str) and len(value) > length:
            raise ValueError(too_long(length, len(value)))
        return encode(value)

    return encode_short


def too_long(length: int, characters: int) -> str:
    """The error for a string with too many characters."""
    return f"VARCHAR({length}) accepts {length} characters, not {characters}"


NULL_REFUSED = "NULL in a column declared NOT NULL"
"""The error for a NULL in a column that accepts none."""


def _null_code() -> int:
    return NULL


def _refuse_null() -> int:
    raise ValueError(NULL_REFUSED)


def _is_null(value: object) -> bool:
    """True for None and its counterparts in pandas and NumPy. Compares type names, because pandas may be absent."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (np.datetime64, np.timedelta64)) and bool(np.isnat(value))


def _refuse_type(kind: str, value: object, accepted: str) -> TypeError:
    return TypeError(f"{kind} accepts {accepted}, not {type(value).__name__}")


def _boolean_encoder(null: Callable[[], int]) -> Encoder:
    def encode(value: Any) -> int:
        if value is True:
            return 1
        if value is False:
            return 0
        if isinstance(value, np.bool_):
            return int(value)
        if _is_null(value):
            return null()
        raise _refuse_type("BOOLEAN", value, "bool")

    return encode


def _integer_encoder(kind: SqlType, null: Callable[[], int]) -> Encoder:
    low, high = kind.bounds
    least = max(low, NULL + 1)

    def encode(value: Any) -> int:
        if type(value) is not int:
            if _is_null(value):
                return null()
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                raise _refuse_type(kind.name, value, "int")
            value = int(value)
        if least <= value <= high:
            code: int = value
            return code
        if value == NULL:
            raise OverflowError(RESERVED)
        raise OverflowError(f"{kind} accepts {least} to {high}")

    return encode


def _code_of_float(value: float) -> int:
    if value != value:
        return NAN
    code: int = _FROM_BITS(_TO_BITS(value + 0.0))[0]  # -0.0 + 0.0 is 0.0
    return code


def _float_encoder(kind: SqlType, null: Callable[[], int]) -> Encoder:
    single = kind.name == "FLOAT"

    def narrow(value: float) -> float:
        try:
            rounded: float = _FROM_SINGLE(_TO_SINGLE(value))[0]
        except OverflowError:
            raise OverflowError("FLOAT holds up to 3.4028235e38; use DOUBLE") from None
        return rounded

    def encode(value: Any) -> int:
        if type(value) is not float:
            if _is_null(value):
                return null()
            if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
                whole = int(value)
                try:
                    value = narrow(float(whole)) if single else float(whole)
                except OverflowError:
                    raise OverflowError(f"{kind} cannot hold it") from None
                if int(value) != whole:
                    raise ValueError(
                        f"{kind} cannot store this integer exactly; pass float(value) to round the integer"
                    )
            elif isinstance(value, (float, np.floating)):
                value = float(value)
            else:
                raise _refuse_type(kind.name, value, "float and int")
        return _code_of_float(narrow(value) if single else value)

    return encode


def _decimal_encoder(kind: SqlType, null: Callable[[], int]) -> Encoder:
    scale, factor = kind.scale, 10**kind.scale
    low, high = kind.bounds

    def encode(value: Any) -> int:
        if isinstance(value, Decimal):
            if not value.is_finite():
                raise ValueError(f"{kind} accepts finite decimals only")
            # No type holds more than 40 digits before the point; int() of a larger value could be enormous.
            # A zero has an exponent too.
            if not value:
                return 0
            if value.adjusted() > 40:
                raise OverflowError(_too_large(kind))
            try:
                code = int(value.scaleb(scale, _EXACT).to_integral_exact(context=_EXACT))
            except (Inexact, InvalidOperation):
                raise ValueError(
                    f"{kind} accepts {scale} digits after the point; round it, or declare a greater scale"
                ) from None
        elif type(value) is int or (isinstance(value, (int, np.integer)) and not isinstance(value, bool)):
            code = int(value) * factor
        elif _is_null(value):
            return null()
        else:
            hint = "; write decimal.Decimal(str(value)) for the printed digits" if isinstance(value, float) else ""
            raise TypeError(f"{_refuse_type(str(kind), value, 'decimal.Decimal and int')}{hint}")
        if low <= code <= high:
            return code
        raise OverflowError(_too_large(kind))

    return encode


def _wide_encoder(kind: SqlType, lookup: Callable[[str], Any], null: Callable[[], int]) -> Callable[[Any], Any]:
    unscaled = _decimal_encoder(kind, null)

    def encode(value: Any) -> Any:
        found = unscaled(value)
        return NULL if found == NULL and _is_null(value) else lookup(text_of(found))

    return encode


def finder_for(kind: SqlType, dictionary: Dictionary) -> Callable[[Any], int | None]:
    """As ``encoder_for``, of a BINARY or a wide DECIMAL that may be NULL. It adds nothing to the dictionary, and gives
    None for a value that the dictionary lacks."""
    if kind == BINARY:
        return _bytes_encoder(dictionary.find, _null_code)
    return _wide_encoder(kind, dictionary.find, _null_code)


def unscaled_encoder(kind: SqlType) -> Encoder:
    """The function that gives the unscaled value of a DECIMAL, NULL for None; errors as of ``encoder_for``."""
    return _decimal_encoder(kind, _null_code)


def _too_large(kind: SqlType) -> str:
    _, high = kind.bounds
    if 10**kind.precision - 1 > high:
        return f"{kind} is stored in 64 bits: at most {high} without its point"
    return f"{kind} accepts {kind.precision - kind.scale} digits before the point"


def _string_encoder(dictionary: Dictionary, null: Callable[[], int]) -> Encoder:
    lookup = dictionary.encode

    def encode(value: Any) -> int:
        if type(value) is str:
            return lookup(value)
        if _is_null(value):
            return null()
        if isinstance(value, str):
            return lookup(str(value))
        raise _refuse_type("STRING", value, "str")

    return encode


def _bytes_encoder(lookup: Callable[[str], Any], null: Callable[[], int]) -> Callable[[Any], Any]:
    def encode(value: Any) -> Any:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return lookup(bytes(value).decode("latin-1"))
        if _is_null(value):
            return null()
        hint = "; write text.encode() for its bytes in UTF-8" if isinstance(value, str) else ""
        raise TypeError(f"{_refuse_type('BINARY', value, 'bytes')}{hint}")

    return encode


def _day_code(days: int) -> int:
    if LEAST_DAY <= days <= GREATEST_DAY:
        return days
    raise OverflowError(f"DATE accepts {LEAST_DAY} to {GREATEST_DAY} days from 1970")


def _micros_code(micros: int) -> int:
    if NULL < micros < 2**63:
        return micros
    raise OverflowError("TIMESTAMP accepts times that fit 64 bits of microseconds from 1970")


_MICROS_PER_UNIT = {"h": 3600 * 10**6, "m": 60 * 10**6, "s": 10**6, "ms": 10**3, "us": 1}
_UNITS_PER_MICRO = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}


def _micros_of_numpy(value: np.datetime64) -> int:
    """Exact microseconds; finer units must be whole microseconds."""
    unit = np.datetime_data(value.dtype)[0]
    if unit in ("Y", "M", "W", "D"):
        return int(value.astype("datetime64[D]").astype(np.int64)) * MICROS_PER_DAY
    count = int(value.astype(f"datetime64[{unit}]").astype(np.int64))
    if unit in _MICROS_PER_UNIT:
        return count * _MICROS_PER_UNIT[unit]
    micros, rest = divmod(count, _UNITS_PER_MICRO[unit])
    if rest:
        raise ValueError("TIMESTAMP accepts whole microseconds")
    return micros


def _micros_of_datetime(value: dt.datetime) -> int:
    if getattr(value, "nanosecond", 0):  # a pandas.Timestamp
        raise ValueError("TIMESTAMP accepts whole microseconds")
    since: dt.timedelta = value - (_EPOCH if value.tzinfo is None else _EPOCH_UTC)
    micros: int = since.days * MICROS_PER_DAY + since.seconds * MICROS_PER_SECOND + since.microseconds
    return micros


def _date_encoder(null: Callable[[], int], read: Callable[[str], int] | None) -> Encoder:
    def encode(value: Any) -> int:
        if type(value) is dt.date:
            return value.toordinal() - _EPOCH_ORDINAL
        if _is_null(value):
            return null()
        if isinstance(value, dt.datetime):
            if value.tzinfo is not None:
                raise ValueError("DATE accepts only a datetime without a zone; pass value.date()")
            micros = _micros_of_datetime(value)
        elif isinstance(value, np.datetime64):
            micros = _micros_of_numpy(value)
        elif isinstance(value, dt.date):
            return value.toordinal() - _EPOCH_ORDINAL
        elif read is not None and isinstance(value, str):
            return read(value)
        else:
            raise _refuse_type("DATE", value, "datetime.date")
        if micros % MICROS_PER_DAY:
            raise ValueError("DATE accepts no time of day; pass value.date()")
        return _day_code(micros // MICROS_PER_DAY)

    return encode


def _timestamp_encoder(null: Callable[[], int], read: Callable[[str], int] | None) -> Encoder:
    def encode(value: Any) -> int:
        if type(value) is dt.datetime and value.tzinfo is None:
            since = value - _EPOCH
            return since.days * MICROS_PER_DAY + since.seconds * MICROS_PER_SECOND + since.microseconds
        if _is_null(value):
            return null()
        if isinstance(value, dt.datetime):
            return _micros_of_datetime(value)
        if isinstance(value, dt.date):
            return (value.toordinal() - _EPOCH_ORDINAL) * MICROS_PER_DAY
        if isinstance(value, np.datetime64):
            return _micros_code(_micros_of_numpy(value))
        if read is not None and isinstance(value, str):
            return read(value)
        raise _refuse_type("TIMESTAMP", value, "datetime.datetime")

    return encode


def _months_encoder(kind: SqlType, null: Callable[[], int]) -> Encoder:
    low, high = kind.bounds

    def encode(value: Any) -> int:
        if _is_null(value):
            return null()
        if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
            raise _refuse_type(str(kind), value, "int, a number of months")
        if low <= value <= high:
            return int(value)
        raise OverflowError(f"{kind} accepts {low} to {high} months")

    return encode


_MICROS_PER_SPAN = {"W": 7 * MICROS_PER_DAY, "D": MICROS_PER_DAY, **_MICROS_PER_UNIT}


def _duration_encoder(kind: SqlType, null: Callable[[], int]) -> Encoder:
    def encode(value: Any) -> int:
        if _is_null(value):
            return null()
        rest = getattr(value, "nanoseconds", 0)  # of a pandas.Timedelta
        if isinstance(value, dt.timedelta):
            micros = value.days * MICROS_PER_DAY + value.seconds * MICROS_PER_SECOND + value.microseconds
        elif isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] not in ("Y", "M", "generic"):
            unit, step = np.datetime_data(value.dtype)
            count = int(value.astype(np.int64)) * step
            micros, rest = count * _MICROS_PER_SPAN.get(unit, 0), 0
            if unit in _UNITS_PER_MICRO:
                micros, rest = divmod(count, _UNITS_PER_MICRO[unit])
        else:
            raise _refuse_type(str(kind), value, "datetime.timedelta")
        if rest:
            raise ValueError(f"{kind} accepts whole microseconds")
        if NULL < micros < 2**63:
            return micros
        raise OverflowError(f"{kind} accepts times that fit 64 bits of microseconds")

    return encode


def decode_value(kind: SqlType, code: int, dictionary: Dictionary) -> Any:
    """The Python value of a code, None for NULL.

    bool, int, float, Decimal, str, bytes, date, datetime or timedelta (months of an INTERVAL are an int);
    numpy.datetime64 for a date outside the years 1 to 9999, which Python's date and datetime cannot hold.
    """
    return decoder_for(kind, dictionary)(code)


def decoder_for(kind: SqlType, dictionary: Dictionary) -> Decoder:
    """The function that decodes the codes of one column."""
    decode = _plain_decoder(kind, dictionary)
    return lambda code: None if code == NULL else decode(code)


def _plain_decoder(kind: SqlType, dictionary: Dictionary) -> Decoder:
    if kind.is_integer:
        return int
    if kind.is_float:
        return lambda code: _FROM_WORD(_TO_WORD(code))[0]
    if kind.is_decimal:
        scale, context = -kind.scale, Context(prec=60)
        if kind.wide:
            text = dictionary.decode
            return lambda code: Decimal(value_of_text(text(code))).scaleb(scale, context)
        return lambda code: Decimal(int(code)).scaleb(scale, context)
    if kind == BINARY:
        text = dictionary.decode
        return lambda code: text(code).encode("latin-1")
    if kind.name == "STRING":
        return dictionary.decode
    if kind.name == "BOOLEAN":
        return bool
    if kind.is_interval:
        return int if kind.is_months else _decode_duration
    return _decode_date if kind.name == "DATE" else _decode_timestamp


def _decode_date(code: int) -> dt.date | np.datetime64:
    try:
        return dt.date.fromordinal(int(code) + _EPOCH_ORDINAL)
    except (ValueError, OverflowError):
        return np.datetime64(int(code), "D")


def _decode_timestamp(code: int) -> dt.datetime | np.datetime64:
    try:
        return _EPOCH + dt.timedelta(microseconds=int(code))
    except OverflowError:
        return np.datetime64(int(code), "us")


def _decode_duration(code: int) -> dt.timedelta:
    return dt.timedelta(microseconds=int(code))


def literal_code(kind: SqlType, value: str | int | float | bool | None, dictionary: Dictionary) -> int:
    """The code of a value of ``freshviews.expr.nodes.Literal`` (dates as days, and so on)."""
    text = text_in(kind, value)
    return number_code(kind, value) if text is None else dictionary.encode(text)  # type: ignore[arg-type]


def constant_code(kind: SqlType, value: str | int | float | bool | None, dictionary: Dictionary) -> int:
    """The code of a constant; as ``literal_code``, but the code is never freed."""
    text = text_in(kind, value)
    return number_code(kind, value) if text is None else dictionary.pin(text)  # type: ignore[arg-type]


def text_in(kind: SqlType, value: str | int | float | bool | None) -> str | None:
    """The text in the dictionary for a value of ``freshviews.expr.nodes.Literal``; None if its code is a number."""
    if isinstance(value, str):
        return value
    return text_of(int(value)) if kind.wide and value is not None else None


def number_code(kind: SqlType, value: int | float | bool | None) -> int:
    """As ``literal_code``, of a value that is not a string."""
    if value is None:
        return NULL
    return _code_of_float(float(value)) if kind.is_float else int(value)


def literal_value(kind: SqlType, code: int, dictionary: Dictionary) -> str | int | float | bool | None:
    """The inverse of ``literal_code``."""
    if code == NULL or not kind.is_text:
        return number_value(kind, code)
    text = dictionary.decode(code)
    return value_of_text(text) if kind.wide else text


def number_value(kind: SqlType, code: int) -> int | float | bool | None:
    """As ``literal_value``, of a value that is not a string."""
    if code == NULL:
        return None
    if kind.is_float:
        number: float = _FROM_WORD(_TO_WORD(code))[0]
        return number
    return bool(code) if kind.name == "BOOLEAN" else code
