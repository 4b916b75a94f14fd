"""Binds the operators + - * / % div and unary minus, over numbers, dates and intervals."""

from __future__ import annotations

from dataclasses import replace

from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions import intervals
from freshviews.sql.expressions.build import VOID, Fault, call, integer, null, retyped
from freshviews.sql.expressions.cast import cast, checked, held, power_of_ten, scaled
from freshviews.sql.expressions.coerce import (
    as_decimal,
    common,
    product_of,
    quotient_of,
    remainder_of,
    sum_of,
    wider,
)
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMP_LTZ, SqlType, decimal


def add(a: Expr, b: Expr) -> Expr:
    if a.type.is_interval or b.type.is_interval:
        return intervals.add(a, b)
    if b.type == DATE and a.type.is_integer:
        a, b = b, a
    if a.type == DATE and b.type.is_integer:
        return call("date_add_days", (a, _day_count(b)), DATE)
    if VOID in (a.type, b.type) and not {a.type, b.type}.isdisjoint((DATE, TIMESTAMP)):
        return null(TIMESTAMP)
    return _sum("+", a, b)


def subtract(a: Expr, b: Expr) -> Expr:
    if a.type.is_interval or b.type.is_interval:
        return intervals.subtract(a, b)
    if a.type == DATE and b.type.is_integer:
        return call("date_add_days", (a, negative(_day_count(b))), DATE)
    moments = (DATE, TIMESTAMP, TIMESTAMP_LTZ)
    if (a.type in moments or b.type in moments) and {a.type, b.type} <= {*moments, STRING, VOID}:
        return intervals.between(a, b)
    return _sum("-", a, b)


def _day_count(days: Expr) -> Expr:
    if days.type == BIGINT:
        raise Fault("a number of days must be an INT, not BIGINT; CAST it to INT")
    return retyped(days, INT)


def multiply(a: Expr, b: Expr) -> Expr:
    if a.type.is_interval or b.type.is_interval:
        return intervals.multiply(a, b)
    a, b, to = _operands("*", a, b)
    if to.is_float:
        return _float("mul_float", a, b, to)
    if to.is_integer:
        return checked(call("mul_int", (a, b), BIGINT), to)
    result = product_of(a.type, b.type)
    lost = a.type.scale + b.type.scale - result.scale
    if lost == 0:
        return held(call("mul_int", (a, b), result))
    return held(call("mul_decimal", (a, b, power_of_ten(lost)), result))


def divide(a: Expr, b: Expr) -> Expr:
    """``/``: DOUBLE for integers and floats, a decimal for a decimal with an integer or decimal."""
    if a.type.is_interval or b.type.is_interval:
        return intervals.divide(a, b)
    a, b = (null(DOUBLE) if operand.type == VOID else operand for operand in (a, b))
    a, b, to = _operands("/", a, b)
    if not to.is_decimal:
        return call("div_float", (cast(a, DOUBLE), cast(b, DOUBLE)), DOUBLE)
    result = quotient_of(a.type, b.type)
    if result.wide:
        return held(quotient(a, b, result))
    up = result.scale - a.type.scale + b.type.scale
    if up < 0:
        # The result keeps fewer digits than the operands: scale the divisor instead.
        return call("div_decimal", (a, call("scale_up", (b, power_of_ten(-up)), b.type), integer(1)), result)
    return call("div_decimal", (a, b, power_of_ten(up)), result)


def quotient(a: Expr, b: Expr, result: SqlType) -> Expr:
    """a / b as a wide decimal; its precision is not checked."""
    scales = map(integer, (a.type.scale, b.type.scale, result.scale))
    a_scale, b_scale, scale = scales
    return call("wide_quotient", (a, a_scale, b, b_scale, scale), result)


def integral_divide(a: Expr, b: Expr) -> Expr:
    """``div``: a BIGINT, truncated."""
    if a.type.is_interval or b.type.is_interval:
        return intervals.integral_divide(a, b)
    a, b, to = _operands("div", a, b)
    if to.is_float:
        raise Fault("div takes integers and decimals; use / for DOUBLE")
    if to.is_decimal:
        level = _level(a, b)
        a, b = scaled(a, level), scaled(b, level)
    return call("div_int", (a, b), BIGINT)


def remainder(a: Expr, b: Expr, op: str = "mod") -> Expr:
    """``%`` and mod (with the sign of a), or pmod (never negative for a positive b)."""
    a, b, to = _operands("%", a, b)
    if to.is_float:
        rest = _float("mod_float", a, b, to)
        if op == "mod":
            return rest
        above = _float("mod_float", call("add_float", (rest, b), DOUBLE), b, to)
        return call("case", (call("lt_float", (rest, Literal(0.0, DOUBLE)), BOOLEAN), above, rest), to)
    if to.is_decimal:
        result = remainder_of(a.type, b.type)
        level = _level(a, b)
        return held(scaled(call(f"{op}_int", (scaled(a, level), scaled(b, level)), level), result))
    return call(f"{op}_int", (a, b), to)


def _level(a: Expr, b: Expr) -> SqlType:
    """The type of two decimals within an operation: wide decimals keep all digits of both."""
    level = wider(a.type, b.type)
    return replace(level, scale=max(a.type.scale, b.type.scale)) if level.wide else level


def negative(a: Expr) -> Expr:
    return intervals.signed("neg", a) if a.type.is_interval else _of_number("neg", numeric("-", a))


def positive(a: Expr) -> Expr:
    return a if a.type.is_interval else numeric("+", a)


def absolute(a: Expr) -> Expr:
    return intervals.signed("abs", a) if a.type.is_interval else _of_number("abs", numeric("abs", a))


def _of_number(op: str, a: Expr) -> Expr:
    if a.type.is_float:
        return call(f"{op}_float", (a,), a.type)
    value = call(f"{op}_int", (a,), a.type if a.type.is_decimal else BIGINT)
    return value if a.type.is_decimal else checked(value, a.type)


def numeric(what: str, a: Expr) -> Expr:
    """The operand as a number: a string and a bare NULL count as a DOUBLE."""
    if a.type in (STRING, VOID):
        return cast(a, DOUBLE)
    if not a.type.is_numeric:
        raise Fault(f"{what} takes numbers, not {a.type}")
    return a


def number(what: str, a: Expr, to: SqlType) -> Expr:
    """The operand of a function as a number of a type, as which Spark takes numbers, strings and NULL alone."""
    if a.type != VOID and a.type != STRING and not a.type.is_numeric:
        raise Fault(f"{what} takes numbers, not {a.type}; CAST it to {to}")
    return cast(a, to)


def _sum(sign: str, a: Expr, b: Expr) -> Expr:
    a, b, to = _operands(sign, a, b)
    op = "add" if sign == "+" else "sub"
    if to.is_float:
        return _float(f"{op}_float", a, b, to)
    if to.is_integer:
        return checked(call(f"{op}_int", (a, b), BIGINT), to)
    result = sum_of(a.type, b.type)
    scale = max(a.type.scale, b.type.scale)
    level = decimal(38, scale, result.wide)
    exact = call(f"{op}_int", (scaled(a, level), scaled(b, level)), replace(result, scale=scale))
    return held(scaled(exact, result))


def _float(op: str, a: Expr, b: Expr, to: SqlType) -> Expr:
    value = call(op, (a, b), DOUBLE)
    # FLOAT arithmetic is double arithmetic rounded once more, which is exact for + - * (IEEE 754).
    return value if to == DOUBLE else call("float_to_float32", (value,), to)


def _operands(sign: str, a: Expr, b: Expr) -> tuple[Expr, Expr, SqlType]:
    """Both operands at their common type, and this type; two decimals keep their own scales."""
    if a.type == VOID and b.type == VOID:
        a, b = (null(BIGINT if sign == "div" else DOUBLE) for _ in range(2))
    to = common(a.type, b.type)
    if STRING in (a.type, b.type) and to == STRING:
        to = DOUBLE
    if to is None or not to.is_numeric:
        raise Fault(f"{a.type} {sign} {b.type} is not defined; use + - * / % only between numbers")
    if to.is_decimal:
        return _exact(a, b), _exact(b, a), to
    return cast(a, to), cast(b, to), to


def _exact(operand: Expr, other: Expr) -> Expr:
    """An operand beside a decimal. An integer constant gets the precision of its written digits."""
    if operand.type.is_decimal:
        return operand
    if operand.type == VOID:
        return null(other.type)
    if isinstance(operand, Literal) and operand.written and isinstance(operand.value, int):
        return retyped(operand, decimal(len(str(abs(operand.value))), 0))
    return cast(operand, as_decimal(operand.type))
