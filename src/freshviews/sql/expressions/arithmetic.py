"""Binds the operators + - * / % div and unary minus, over numbers, dates and intervals."""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions.build import VOID, Fault, call, integer, null, retyped
from freshviews.sql.expressions.cast import cast, checked, power_of_ten, scaled
from freshviews.sql.expressions.coerce import (
    as_decimal,
    common,
    product_of,
    quotient_of,
    remainder_of,
    sum_of,
    wider,
)
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType, decimal

MICROS_PER_DAY = 86_400_000_000


@dataclass(frozen=True)
class Interval:
    """A constant INTERVAL. ``whole_days``: its smallest unit is a day or more, so a DATE plus it is a DATE."""

    months: int = 0
    micros: int = 0
    whole_days: bool = True

    def __post_init__(self) -> None:
        if max(abs(self.months), abs(self.micros)) >= 2**63:
            raise Fault("an INTERVAL cannot exceed 2**63 - 1 months or microseconds")

    def times(self, factor: int) -> Interval:
        return Interval(self.months * factor, self.micros * factor, self.whole_days)

    def plus(self, other: Interval) -> Interval:
        if bool(self.months) != bool(other.months) and (self.months or self.micros):
            raise Fault("an INTERVAL can have years and months, or days and smaller units, not both")
        return Interval(self.months + other.months, self.micros + other.micros, self.whole_days and other.whole_days)


_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": MICROS_PER_DAY,
    "WEEK": 7 * MICROS_PER_DAY,
}


def interval_of(amount: str, unit: str) -> Interval:
    """``INTERVAL 'amount' unit``. Raises ``Fault`` for an unknown unit or an amount that is not a number."""
    name = unit.upper()
    name = name[:-1] if name.endswith("S") and name[:-1] in {**_MONTHS, **_MICROS} else name
    try:
        if name in _MONTHS:
            return Interval(months=int(amount) * _MONTHS[name])
        if name in _MICROS:
            whole, _, fraction = amount.strip().partition(".")
            if not fraction:
                return Interval(micros=int(whole) * _MICROS[name], whole_days=name in ("DAY", "WEEK"))
            if name == "SECOND" and len(fraction) <= 6:
                sign = -1 if whole.startswith("-") else 1
                micros = int(whole or "0") * 1_000_000 + sign * int(fraction.ljust(6, "0"))
                return Interval(micros=micros, whole_days=False)
    except ValueError:
        pass
    else:
        if name not in _MICROS:
            raise Fault(
                f"INTERVAL unit {unit} is not known; accepted: YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, "
                "MINUTE, SECOND, MILLISECOND and MICROSECOND"
            )
    raise Fault(f"INTERVAL '{amount}' {unit} is not a number of {name.lower()}s")


def interval_of_text(written: str) -> Interval:
    """An interval written as numbers and units, such as ``1 hour 30 minutes``. Raises ``Fault``."""
    words = written.lower().removeprefix("interval").split()
    if not words or len(words) % 2:
        raise Fault(f"the interval '{written}' cannot be read; write numbers and units, as in '10 minutes'")
    made = Interval()
    for amount, unit in zip(words[::2], words[1::2], strict=True):
        made = made.plus(interval_of(amount, unit))
    return made


def shifted(moment: Expr, by: Interval) -> Expr:
    """A moment plus an interval, of the same type; a DATE becomes a TIMESTAMP if the interval has hours or less."""
    if moment.type == STRING and not by.months:
        return cast(shifted(cast(moment, TIMESTAMP), by), STRING)
    if moment.type == DATE:
        if by.months:
            return call("add_months", (moment, integer(by.months)), DATE)
        if by.whole_days:
            return call("date_add_days", (moment, integer(by.micros // MICROS_PER_DAY)), DATE)
        moment = cast(moment, TIMESTAMP)
    if moment.type != TIMESTAMP:
        raise Fault(f"an INTERVAL can be added only to a DATE or TIMESTAMP, not to {moment.type}; CAST to one of them")
    if by.months:
        return call("add_months_timestamp", (moment, integer(by.months)), TIMESTAMP)
    return call("add_micros", (moment, integer(by.micros)), TIMESTAMP)


def add(a: Expr | Interval, b: Expr | Interval) -> Expr | Interval:
    if isinstance(a, Interval) and isinstance(b, Interval):
        return a.plus(b)
    if isinstance(a, Interval):
        a, b = b, a
    assert not isinstance(a, Interval)
    if isinstance(b, Interval):
        return shifted(a, b)
    if b.type == DATE and a.type.is_integer:
        a, b = b, a
    if a.type == DATE and b.type.is_integer:
        return call("date_add_days", (a, _day_count(b)), DATE)
    return _sum("+", a, b)


def subtract(a: Expr | Interval, b: Expr | Interval) -> Expr | Interval:
    if isinstance(b, Interval):
        return add(a, b.times(-1))
    if isinstance(a, Interval):
        raise Fault(f"{b.type} cannot be subtracted from an INTERVAL")
    if a.type == DATE and b.type.is_integer:
        return call("date_add_days", (a, negative(_day_count(b))), DATE)
    if a.type in (DATE, TIMESTAMP) and b.type in (DATE, TIMESTAMP):
        raise Fault(f"{a.type} - {b.type} is an INTERVAL, which cannot be the type of a column; use datediff(a, b)")
    return _sum("-", a, b)


def _day_count(days: Expr) -> Expr:
    if days.type == BIGINT:
        raise Fault("a number of days must be an INT, not BIGINT; CAST it to INT")
    return retyped(days, INT)


def multiply(a: Expr | Interval, b: Expr | Interval) -> Expr | Interval:
    if isinstance(a, Interval):
        a, b = b, a
    if isinstance(b, Interval):
        if isinstance(a, Literal) and a.type.is_integer and isinstance(a.value, int):
            return b.times(a.value)
        raise Fault("an INTERVAL can be multiplied only by a constant integer")
    assert not isinstance(a, Interval)
    a, b, to = _operands("*", a, b)
    if to.is_float:
        return _float("mul_float", a, b, to)
    if to.is_integer:
        return checked(call("mul_int", (a, b), BIGINT), to)
    result = product_of(a.type, b.type)
    lost = a.type.scale + b.type.scale - result.scale
    if lost == 0:
        return call("mul_int", (a, b), result)
    return call("mul_decimal", (a, b, power_of_ten(lost)), result)


def divide(a: Expr, b: Expr) -> Expr:
    """``/``: DOUBLE for integers and floats, a decimal for a decimal with an integer or decimal."""
    a, b = (null(DOUBLE) if operand.type == VOID else operand for operand in (a, b))
    a, b, to = _operands("/", a, b)
    if not to.is_decimal:
        return call("div_float", (cast(a, DOUBLE), cast(b, DOUBLE)), DOUBLE)
    result = quotient_of(a.type, b.type)
    up = result.scale - a.type.scale + b.type.scale
    if up < 0:
        # The result keeps fewer digits than the operands: scale the divisor instead.
        return call("div_decimal", (a, call("scale_up", (b, power_of_ten(-up)), b.type), integer(1)), result)
    return call("div_decimal", (a, b, power_of_ten(up)), result)


def integral_divide(a: Expr, b: Expr) -> Expr:
    """``div``: a BIGINT, truncated."""
    a, b, to = _operands("div", a, b)
    if to.is_float:
        raise Fault("div takes integers and decimals; use / for DOUBLE")
    if to.is_decimal:
        level = wider(a.type, b.type)
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
        level = wider(a.type, b.type)
        return scaled(call(f"{op}_int", (scaled(a, level), scaled(b, level)), level), result)
    return call(f"{op}_int", (a, b), to)


def negate(a: Expr | Interval) -> Expr | Interval:
    if isinstance(a, Interval):
        return a.times(-1)
    return negative(a)


def negative(a: Expr) -> Expr:
    return _of_number("neg", numeric("-", a))


def positive(a: Expr) -> Expr:
    return numeric("+", a)


def absolute(a: Expr) -> Expr:
    return _of_number("abs", numeric("abs", a))


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


def _sum(sign: str, a: Expr, b: Expr) -> Expr:
    a, b, to = _operands(sign, a, b)
    op = "add" if sign == "+" else "sub"
    if to.is_float:
        return _float(f"{op}_float", a, b, to)
    if to.is_integer:
        return checked(call(f"{op}_int", (a, b), BIGINT), to)
    result = sum_of(a.type, b.type)
    scale = max(a.type.scale, b.type.scale)
    level = decimal(38, scale)
    exact = call(f"{op}_int", (scaled(a, level), scaled(b, level)), decimal(result.precision, scale))
    return scaled(exact, result)


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
        raise Fault(f"{a.type} {sign} {b.type} is not defined; + - * / % take numbers")
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
