"""Applies the type rules of Spark SQL in ANSI mode: finds common types, and the precision and scale of decimals.

One rule differs: decimals have at most 18 digits, because codes are int64.
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

_RANK = {"TINYINT": 0, "SMALLINT": 1, "INT": 2, "BIGINT": 3}
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}

GREATEST_PRECISION = 38
_LEAST_SCALE = 6
_CODE_DIGITS = 18


def as_decimal(numeric: SqlType) -> SqlType:
    """The decimal that holds every value of an integer type; a decimal is itself."""
    return numeric if numeric.is_decimal else decimal(_DIGITS[numeric.name], 0)


def wider(one: SqlType, other: SqlType) -> SqlType:
    """The decimal that holds both, up to 38 digits; integral digits take precedence."""
    whole = max(one.precision - one.scale, other.precision - other.scale)
    scale = max(one.scale, other.scale)
    if whole + scale <= GREATEST_PRECISION:
        return decimal(whole + scale, scale)
    return decimal(GREATEST_PRECISION, max(GREATEST_PRECISION - whole, 0))


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
    return _adjusted(whole + scale + 1, scale)


def product_of(one: SqlType, other: SqlType) -> SqlType:
    """Decimal ``*``."""
    return _adjusted(one.precision + other.precision + 1, one.scale + other.scale)


def quotient_of(one: SqlType, other: SqlType) -> SqlType:
    """Decimal ``/``."""
    scale = max(_LEAST_SCALE, one.scale + other.precision + 1)
    exact = _adjusted(one.precision - one.scale + other.scale + scale, scale)
    if exact.precision <= _CODE_DIGITS:
        return exact
    whole = exact.precision - exact.scale
    scale = max(_CODE_DIGITS - whole, min(exact.scale, _LEAST_SCALE))
    return decimal(min(whole + scale, GREATEST_PRECISION), scale)


def remainder_of(one: SqlType, other: SqlType) -> SqlType:
    """Decimal ``%``."""
    scale = max(one.scale, other.scale)
    return _adjusted(min(one.precision - one.scale, other.precision - other.scale) + scale, scale)


def total_of(argument: SqlType) -> SqlType | None:
    """The type of SUM; None for a type without a sum."""
    if argument.is_integer:
        return BIGINT
    if argument.is_decimal:
        return decimal(min(GREATEST_PRECISION, argument.precision + 10), argument.scale)
    if argument.is_interval:
        return argument
    return DOUBLE if argument.is_float or argument == STRING else None


def mean_of(argument: SqlType) -> SqlType | None:
    """The type of AVG; None for a type without a mean."""
    if argument.is_decimal:
        return _bounded(argument.precision + 4, argument.scale + 4)
    if argument.is_interval:
        return YEAR_TO_MONTH if argument.is_months else DAY_TO_SECOND
    return DOUBLE if argument.is_numeric or argument == STRING else None


def _bounded(precision: int, scale: int) -> SqlType:
    return decimal(min(precision, GREATEST_PRECISION), min(scale, GREATEST_PRECISION))


def _adjusted(precision: int, scale: int) -> SqlType:
    """Spark's adjustPrecisionScale: beyond 38 digits the fraction is shortened, down to 6 digits."""
    if precision <= GREATEST_PRECISION:
        return decimal(precision, scale)
    whole = precision - scale
    return decimal(GREATEST_PRECISION, max(GREATEST_PRECISION - whole, min(scale, _LEAST_SCALE)))
