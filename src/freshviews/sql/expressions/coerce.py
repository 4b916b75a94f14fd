"""Applies the type rules of Spark SQL in ANSI mode: finds common types, and the precision and scale of decimals.

A wide DECIMAL has up to 38 digits; any other DECIMAL fits an int64. A result is wide if an operand is wide. A product,
quotient or mean is also wide if an int64 would leave it fewer than ``_WORD_WHOLE`` digits before the point. Any other
result must fit an int64, or it is an error.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.sql.expressions.build import VOID
from freshviews.types import (
    BIGINT,
    DATE,
    DAY_TO_SECOND,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    YEAR_TO_MONTH,
    SqlType,
    decimal,
)
from freshviews.types.sqltype import WORD_DIGITS

_RANK = {"TINYINT": 0, "SMALLINT": 1, "INT": 2, "BIGINT": 3}
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_OF_FLOATS = {"FLOAT": decimal(14, 7), "DOUBLE": decimal(30, 15)}

GREATEST_PRECISION = 38
_LEAST_SCALE = 6
_WORD_WHOLE = 12


def as_decimal(numeric: SqlType) -> SqlType:
    """The decimal that holds every value of an integer type, and as which FLOAT and DOUBLE are read; a decimal is
    itself."""
    if numeric.is_float:
        return _OF_FLOATS[numeric.name]
    return numeric if numeric.is_decimal else decimal(_DIGITS[numeric.name], 0)


def wider(one: SqlType, other: SqlType) -> SqlType:
    """The decimal that holds both, up to 38 digits; integral digits take precedence."""
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale, wide = max(one.scale, other.scale), one.wide or other.wide
    if whole + scale <= GREATEST_PRECISION:
        return decimal(whole + scale, scale, wide)
    return decimal(GREATEST_PRECISION, max(GREATEST_PRECISION - whole, 0), wide)


def common(one: SqlType, other: SqlType) -> SqlType | None:
    """The least common type; None if Spark has none."""
    if one == other or other == VOID:
        return one
    if one == VOID:
        return other
    if STRING in (one, other):
        partner = other if one == STRING else one
        if partner.is_interval:
            return None
        if partner.is_integer:
            return BIGINT
        return DOUBLE if partner.is_numeric else partner
    if one.is_numeric and other.is_numeric:
        if one.is_integer and other.is_integer:
            return max(one, other, key=lambda t: _RANK[t.name])
        if one.is_float or other.is_float:
            # INT with FLOAT is DOUBLE too, so that no digit is lost; FLOAT with FLOAT was handled as equal.
            return DOUBLE
        return wider(as_decimal(one), as_decimal(other))
    if one.is_interval and other.is_interval and one.is_months == other.is_months:
        return replace(one, precision=min(one.precision, other.precision), scale=max(one.scale, other.scale))
    if {one, other} <= {DATE, TIMESTAMP, TIMESTAMP_LTZ}:
        return TIMESTAMP_LTZ if TIMESTAMP_LTZ in (one, other) else TIMESTAMP
    return None


def sum_of(one: SqlType, other: SqlType) -> SqlType:
    """Decimal + and -."""
    scale = max(one.scale, other.scale)
    whole = max(one.precision - one.scale, other.precision - other.scale)
    return _adjusted(whole + scale + 1, scale, one.wide or other.wide)


def product_of(one: SqlType, other: SqlType) -> SqlType:
    """Decimal ``*``."""
    return _computed(_adjusted(one.precision + other.precision + 1, one.scale + other.scale, one.wide or other.wide))


def quotient_of(one: SqlType, other: SqlType) -> SqlType:
    """Decimal ``/``."""
    scale = max(_LEAST_SCALE, one.scale + other.precision + 1)
    whole = one.precision - one.scale + other.scale
    return _computed(_adjusted(whole + scale, scale, one.wide or other.wide))


def remainder_of(one: SqlType, other: SqlType) -> SqlType:
    """Decimal ``%``."""
    scale = max(one.scale, other.scale)
    whole = min(one.precision - one.scale, other.precision - other.scale)
    return _adjusted(whole + scale, scale, one.wide or other.wide)


def total_of(argument: SqlType) -> SqlType | None:
    """The type of SUM; None for a type without a sum."""
    if argument.is_integer:
        return BIGINT
    if argument.is_decimal:
        return decimal(min(GREATEST_PRECISION, argument.precision + 10), argument.scale, argument.wide)
    if argument.is_interval:
        return argument
    return DOUBLE if argument.is_float or argument == STRING else None


def mean_of(argument: SqlType) -> SqlType | None:
    """The type of AVG; None for a type without a mean."""
    if argument.is_decimal:
        precision, scale = (min(digits + 4, GREATEST_PRECISION) for digits in (argument.precision, argument.scale))
        return _computed(decimal(precision, scale, argument.wide))
    if argument.is_interval:
        return YEAR_TO_MONTH if argument.is_months else DAY_TO_SECOND
    return DOUBLE if argument.is_numeric or argument == STRING else None


def _computed(result: SqlType) -> SqlType:
    """The type, wide if a word leaves its values few digits before the point."""
    return decimal(result.precision, result.scale, result.wide or WORD_DIGITS - result.scale < _WORD_WHOLE)


def _adjusted(precision: int, scale: int, wide: bool) -> SqlType:
    """Spark's adjustPrecisionScale: beyond 38 digits the fraction is shortened, down to 6 digits."""
    if precision <= GREATEST_PRECISION:
        return decimal(precision, scale, wide)
    whole = precision - scale
    return decimal(GREATEST_PRECISION, max(GREATEST_PRECISION - whole, min(scale, _LEAST_SCALE)), wide)
