"""Defines the SQL types. A value of each type is represented by an int64, its code.

=========  ==========================================================
type       code
=========  ==========================================================
BOOLEAN    0 or 1
integers   the value
DATE       days since 1970-01-01
TIMESTAMP  microseconds since 1970-01-01 00:00:00, no zone
INTERVAL   months of YEAR and MONTH; microseconds of DAY to SECOND
DECIMAL    the unscaled value: 12.30 of DECIMAL(12, 2) is 1230; for a wide DECIMAL, the number of a text (below)
DOUBLE     the bits of the float64, with one zero and one NaN
FLOAT      the bits of the float64 that equals the float32
STRING     its number in the dictionary of the database
BINARY     the number of a text that has a character for each byte
=========  ==========================================================

A *wide* DECIMAL has up to 38 digits. ``text_of`` makes a text of each value, and the dictionary numbers the texts. They
sort as the values do, so their codes are treated like codes of strings. A DECIMAL is wide if it is declared with more
than 18 digits or computed from a wide one. A product, quotient or mean is also wide if an int64 would leave it few
digits before the point.

NULL of every type has the code ``NULL``, the least int64. So a BIGINT of exactly that value is refused everywhere: as
input, as a constant and as a result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

NULL = -(2**63)
"""The code of NULL, of every type."""

RESERVED = f"{NULL} cannot be stored: its 64-bit code stands for NULL; a DECIMAL(19, 0) holds it, as {NULL}BD"
"""The error for a SQL value whose code would be read as NULL."""

NAN = 0x7FF8000000000000
"""The code of the one NaN, of DOUBLE and FLOAT."""


@dataclass(frozen=True, repr=False)
class SqlType:
    """A SQL type; DECIMAL uses ``precision`` and ``scale``, and an INTERVAL for its first and last field. BINARY has
    the codes of STRING, and TIMESTAMP_LTZ has the codes of TIMESTAMP; the precision tells the types apart.

    ``wide``: of a DECIMAL, its codes are those of texts."""

    name: str
    precision: int = 0
    scale: int = 0
    wide: bool = False

    def __repr__(self) -> str:
        # Images of views have the representation of their types.
        wide = ", wide=True" if self.wide else ""
        return f"SqlType(name={self.name!r}, precision={self.precision}, scale={self.scale}{wide})"

    def __str__(self) -> str:
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision}, {self.scale})"
        if self.is_interval:
            first, last = FIELDS[self.precision], FIELDS[self.scale]
            return f"INTERVAL {first}" if first == last else f"INTERVAL {first} TO {last}"
        if self == TIMESTAMP_LTZ:
            return "TIMESTAMP_LTZ"
        return "BINARY" if self == BINARY else self.name

    @property
    def is_integer(self) -> bool:
        return self.name in _INTEGER_BITS

    @property
    def is_float(self) -> bool:
        return self.name in ("FLOAT", "DOUBLE")

    @property
    def is_decimal(self) -> bool:
        return self.name == "DECIMAL"

    @property
    def is_text(self) -> bool:
        """True if its codes are those of texts in the dictionary: of a STRING and of a wide DECIMAL."""
        return self.wide or self.name == "STRING"

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.is_decimal

    @property
    def is_interval(self) -> bool:
        return self.name == "INTERVAL"

    @property
    def is_months(self) -> bool:
        """True for an INTERVAL of years and months, False for one of days to seconds."""
        return self.is_interval and self.scale < FIELDS.index("DAY")

    @property
    def unit(self) -> int:
        """Months or microseconds in the last field of an INTERVAL."""
        return FIELD_UNITS[FIELDS[self.scale]]

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest value of an integer, a decimal (unscaled) or an interval type."""
        if self.is_decimal:
            limit = 10**self.precision - 1
            if not self.wide:
                limit = min(limit, 2**63 - 1)
            return -limit, limit
        bits = _INTEGER_BITS["INT" if self.is_months else "BIGINT" if self.is_interval else self.name]
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


FIELD_UNITS = {
    "YEAR": 12, "MONTH": 1, "DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000,
}  # fmt: skip
"""Months or microseconds in each field of an INTERVAL."""

FIELDS = tuple(FIELD_UNITS)

_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}

BOOLEAN = SqlType("BOOLEAN")
TINYINT = SqlType("TINYINT")
SMALLINT = SqlType("SMALLINT")
INT = SqlType("INT")
BIGINT = SqlType("BIGINT")
FLOAT = SqlType("FLOAT")
DOUBLE = SqlType("DOUBLE")
STRING = SqlType("STRING")
BINARY = SqlType("STRING", 8)
"""Bytes, coded as a string with a character, U+0000 to U+00FF, for each byte. So the order is that of the bytes."""
DATE = SqlType("DATE")
TIMESTAMP = SqlType("TIMESTAMP")
TIMESTAMP_LTZ = SqlType("TIMESTAMP", 1)
"""A moment, with the code of a TIMESTAMP in UTC; SQL reads and prints it in the time zone of the catalog."""


def interval(first: str, last: str) -> SqlType:
    """INTERVAL first TO last, by the names of its fields. Raises ValueError if there is no such type."""
    one, other = first.upper().removesuffix("S"), last.upper().removesuffix("S")
    if one in FIELDS and other in FIELDS and FIELDS.index(one) <= FIELDS.index(other):
        kind = SqlType("INTERVAL", FIELDS.index(one), FIELDS.index(other))
        if kind.is_months == (one in ("YEAR", "MONTH")):
            return kind
    raise ValueError(
        f"INTERVAL {first.upper()} TO {last.upper()} is not a type; write YEAR, MONTH or YEAR TO MONTH, or one of "
        "DAY, HOUR, MINUTE and SECOND, or a range of these four, as in DAY TO SECOND"
    )


YEAR_TO_MONTH = interval("YEAR", "MONTH")
DAY_TO_SECOND = interval("DAY", "SECOND")


class NotHeldError(ValueError):
    """A SQL value that does not fit 64 bits: an error even where other values that do not fit become NULL."""


WORD_DIGITS = 18
"""Most digits of a DECIMAL that always fits 64 bits."""


def decimal(precision: int, scale: int, wide: bool = False) -> SqlType:
    """DECIMAL(precision, scale); ``wide``: it is wide if 64 bits do not hold all of its values."""
    return SqlType("DECIMAL", precision, scale, wide and precision > WORD_DIGITS)


def declared_decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL(precision, scale) that holds each of its values."""
    return decimal(precision, scale, True)


_ZERO = 0x80
_COMPLEMENT = str.maketrans("0123456789", "9876543210")


def text_of(unscaled: int) -> str:
    """The text of a value of a wide DECIMAL; the texts are in the order of the values, as code points and as bytes.

    The first character says the sign and the number of digits, U+0080 plus that number or less it. The digits follow,
    those of a negative value each subtracted from 9. Raises OverflowError for more than 120 digits.
    """
    digits = str(abs(unscaled))
    if len(digits) > 120:
        raise OverflowError("a decimal has at most 120 digits within an expression")
    if unscaled < 0:
        return chr(_ZERO - len(digits)) + digits.translate(_COMPLEMENT)
    return chr(_ZERO + len(digits)) + digits


def value_of_text(text: str) -> int:
    """The inverse of ``text_of``."""
    return int(text[1:]) if ord(text[0]) > _ZERO else -int(text[1:].translate(_COMPLEMENT))
