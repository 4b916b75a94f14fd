"""The scalar functions, by their SQL names.

Each entry of ``FUNCTIONS`` says how many arguments it takes and what it becomes. Arguments arrive bound,
with their own types; the entry casts them to what it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from freshviews.catalog.catalog import near
from freshviews.expr.nodes import Expr, Literal
from freshviews.sql.expressions import arithmetic, dates, logic
from freshviews.sql.expressions.build import VOID, Fault, Refusal, call, integer, null, retyped, text
from freshviews.sql.expressions.cast import cast, checked, power_of_ten, scaled
from freshviews.sql.expressions.coerce import common
from freshviews.sql.text.refuse import AGGREGATES, REFUSED_FUNCTIONS
from freshviews.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, STRING, TIMESTAMP, SqlType, decimal

_ANY = 1_000_000


@dataclass(frozen=True)
class Function:
    """A scalar function: the least and greatest number of arguments, and what it becomes."""

    least: int
    greatest: int
    make: Callable[..., Expr]


def scalar(name: str, args: Sequence[Expr]) -> Expr:
    """The call of a function by its lower-case name. Raises ``Fault`` or ``Refusal``."""
    if name in REFUSED_FUNCTIONS:
        raise Refusal(*REFUSED_FUNCTIONS[name])
    function = FUNCTIONS.get(name)
    if function is None:
        raise Refusal(f"function {name}", "docs/sql.md lists the functions" + near(name, (*FUNCTIONS, *AGGREGATES)))
    if not function.least <= len(args) <= function.greatest:
        counts = f"{function.least}" if function.least == function.greatest else f"{function.least} or more"
        raise Fault(f"{name} takes {counts} arguments, not {len(args)}")
    return function.make(*args)


def date_part(part: str, moment: Expr) -> Expr:
    """EXTRACT(part FROM moment) and date_part."""
    name = _PART_NAMES.get(part.lower(), part.lower())
    if name == "seconds_with_fraction":
        micros = call("pmod_int", (cast(moment, TIMESTAMP), integer(60_000_000)), BIGINT)
        return retyped(micros, decimal(8, 6))
    if name not in _PARTS:
        raise Refusal(f"the field {part.upper()}", f"accepted are {', '.join(p.upper() for p in _PART_NAMES)}")
    return FUNCTIONS[name].make(moment)


def trimmed(side: str, value: Expr, characters: Expr | None) -> Expr:
    """TRIM([BOTH | LEADING | TRAILING] [characters FROM] value)."""
    op = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side.upper(), "trim")
    args = (_string(value),) if characters is None else (_string(value), _string(characters))
    return call(op, args, STRING)


def _string(value: Expr) -> Expr:
    return cast(value, STRING)


def _int(value: Expr) -> Expr:
    if value.type == VOID:
        return null(INT)
    if not (value.type.is_integer or value.type == STRING):
        raise Fault(f"an INT is needed here, not {value.type}")
    return cast(value, INT)


def _strings(op: str, count: int, ints: int, result: SqlType) -> Callable[..., Expr]:
    """An operation whose first ``count`` arguments are strings and whose next ``ints`` are integers."""

    def make(*args: Expr) -> Expr:
        made = [_int(arg) if count <= i < count + ints else _string(arg) for i, arg in enumerate(args)]
        return call(op, tuple(made), result)

    return make


def _double(op: str) -> Callable[..., Expr]:
    return lambda *args: call(op, tuple(cast(arithmetic.numeric(op, arg), DOUBLE) for arg in args), DOUBLE)


def _round(value: Expr, digits: Expr | None = None) -> Expr:
    value = arithmetic.numeric("round", value)
    places = 0 if digits is None else _constant_int("round", digits)
    if value.type.is_float:
        return call("round_float", (cast(value, DOUBLE), integer(places)), DOUBLE)
    if value.type.is_integer:
        if places >= 0:
            return value
        rounded = call("scale_down", (value, power_of_ten(-places)), BIGINT)
        return checked(call("scale_up", (rounded, power_of_ten(-places)), BIGINT), value.type)
    whole = value.type.precision - value.type.scale + 1
    if places >= 0:
        scale = min(value.type.scale, places)
        return scaled(value, decimal(min(whole + scale, 38), scale))
    to = decimal(min(max(whole, -places + 1), 38), 0)
    rounded = call("scale_down", (value, power_of_ten(value.type.scale - places)), to)
    return call("scale_up", (rounded, power_of_ten(-places)), to)


def _toward(which: str) -> Callable[..., Expr]:
    """FLOOR or CEIL: a BIGINT of integers and floats, a decimal without fraction of decimals."""

    def make(value: Expr) -> Expr:
        value = arithmetic.numeric(which, value)
        if value.type.is_integer:
            return retyped(value, BIGINT)
        if value.type.is_float:
            return call(f"{which}_float", (value,), BIGINT)
        to = decimal(min(value.type.precision - value.type.scale + 1, 38), 0)
        if value.type.scale == 0:
            return retyped(value, to)
        return call(f"{which}_decimal", (value, power_of_ten(value.type.scale)), to)

    return make


def _constant_int(what: str, value: Expr) -> int:
    if isinstance(value, Literal) and value.type.is_integer and isinstance(value.value, int):
        return value.value
    raise Refusal(f"{what} with an argument that is not a constant integer", "write the number of digits")


def _sign(value: Expr) -> Expr:
    value = arithmetic.numeric("sign", value)
    if value.type.is_float:
        return call("sign_float", (value,), DOUBLE)
    return call("int_to_float", (call("sign_int", (value,), INT),), DOUBLE)


def _nullif(a: Expr, b: Expr) -> Expr:
    return logic.choose([(logic.compare("=", a, b), null(a.type))], a)


def _nvl2(a: Expr, b: Expr, c: Expr) -> Expr:
    return logic.choose([(call("is_not_null", (a,), BOOLEAN), b)], c)


def _isnan(value: Expr) -> Expr:
    return call("is_nan", (cast(value, DOUBLE),), BOOLEAN)


def _remainder(op: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: arithmetic.remainder(a, b, op)


def _log(base: Expr, value: Expr | None = None) -> Expr:
    """log(x) is the natural logarithm, log(base, x) to a base."""
    if value is None:
        return _double("ln")(base)
    return arithmetic.divide(_double("ln")(value), _double("ln")(base))


def _replace(value: Expr, search: Expr, by: Expr | None = None) -> Expr:
    return call("replace", (_string(value), _string(search), text("") if by is None else _string(by)), STRING)


def _concat_ws(separator: Expr, *rest: Expr) -> Expr:
    return call("concat_ws", (_string(separator), *map(_string, rest)), STRING)


def _extreme(which: str) -> Callable[..., Expr]:
    return lambda *values: logic.extreme(which, values)


def _two_trim(op: str) -> Callable[..., Expr]:
    """ltrim and rtrim take the characters first, btrim last, as in Spark."""

    def make(first: Expr, second: Expr | None = None) -> Expr:
        if second is None:
            return call(op, (_string(first),), STRING)
        value, characters = (first, second) if op == "trim" else (second, first)
        return call(op, (_string(value), _string(characters)), STRING)

    return make


def _cast_to(to: SqlType) -> Function:
    return Function(1, 1, lambda value: cast(value, to))


def _if(when: Expr, then: Expr, otherwise: Expr) -> Expr:
    return logic.choose([(when, then)], otherwise)


def _nanvl(a: Expr, b: Expr) -> Expr:
    to = common(a.type, b.type)
    if to is None or not to.is_float:
        raise Fault("nanvl takes DOUBLE or FLOAT")
    return logic.choose([(_isnan(a), b)], a)


FUNCTIONS: dict[str, Function] = {
    # choice
    "coalesce": Function(1, _ANY, lambda *values: logic.first_of(values)),
    "nvl": Function(2, 2, lambda *values: logic.first_of(values)),
    "ifnull": Function(2, 2, lambda *values: logic.first_of(values)),
    "nvl2": Function(3, 3, _nvl2),
    "nullif": Function(2, 2, _nullif),
    "zeroifnull": Function(1, 1, lambda value: logic.first_of((value, Literal(0, INT)))),
    "nullifzero": Function(1, 1, lambda value: _nullif(value, Literal(0, INT))),
    "if": Function(3, 3, _if),
    "iff": Function(3, 3, _if),
    "isnull": Function(1, 1, lambda value: call("is_null", (value,), BOOLEAN)),
    "isnotnull": Function(1, 1, lambda value: call("is_not_null", (value,), BOOLEAN)),
    "isnan": Function(1, 1, _isnan),
    "nanvl": Function(2, 2, _nanvl),
    "equal_null": Function(2, 2, logic.null_safe_equal),
    "greatest": Function(2, _ANY, _extreme("greatest")),
    "least": Function(2, _ANY, _extreme("least")),
    # numbers
    "abs": Function(1, 1, arithmetic.absolute),
    "sign": Function(1, 1, _sign),
    "signum": Function(1, 1, _sign),
    "negative": Function(1, 1, arithmetic.negative),
    "mod": Function(2, 2, _remainder("mod")),
    "pmod": Function(2, 2, _remainder("pmod")),
    "round": Function(1, 2, _round),
    "floor": Function(1, 1, _toward("floor")),
    "ceil": Function(1, 1, _toward("ceil")),
    "ceiling": Function(1, 1, _toward("ceil")),
    "sqrt": Function(1, 1, _double("sqrt")),
    "exp": Function(1, 1, _double("exp")),
    "ln": Function(1, 1, _double("ln")),
    "log": Function(1, 2, _log),
    "log10": Function(1, 1, _double("log10")),
    "power": Function(2, 2, _double("power")),
    "pow": Function(2, 2, _double("power")),
    "sin": Function(1, 1, _double("sin")),
    "cos": Function(1, 1, _double("cos")),
    "tan": Function(1, 1, _double("tan")),
    # dates and times
    **{name: Function(1, 1, dates.part(name)) for name in dates.DATE_PARTS},
    **{name: Function(1, 1, dates.clock(name)) for name in ("hour", "minute", "second")},
    "dayofmonth": Function(1, 1, dates.part("day")),
    "last_day": Function(1, 1, dates.last_day),
    "date_add": Function(2, 3, dates.date_add),
    "dateadd": Function(2, 3, dates.date_add),
    "timestampadd": Function(3, 3, dates.date_add),
    "date_sub": Function(2, 2, dates.date_sub),
    "datediff": Function(2, 3, dates.date_diff),
    "date_diff": Function(2, 3, dates.date_diff),
    "add_months": Function(2, 2, dates.add_months),
    "trunc": Function(2, 2, dates.trunc),
    "date_trunc": Function(2, 2, dates.date_trunc),
    "date_part": Function(2, 2, lambda part, moment: date_part(dates.word("date_part", part), moment)),
    "date_format": Function(2, 2, dates.date_format),
    "unix_timestamp": Function(1, 1, lambda t: call("unix_timestamp", (cast(t, TIMESTAMP),), BIGINT)),
    "timestamp_seconds": Function(1, 1, lambda n: call("timestamp_seconds", (cast(n, BIGINT),), TIMESTAMP)),
    "to_date": _cast_to(DATE),
    "date": _cast_to(DATE),
    "to_timestamp": _cast_to(TIMESTAMP),
    "timestamp": _cast_to(TIMESTAMP),
    # casts by name
    "boolean": _cast_to(BOOLEAN),
    "tinyint": _cast_to(SqlType("TINYINT")),
    "smallint": _cast_to(SqlType("SMALLINT")),
    "int": _cast_to(INT),
    "bigint": _cast_to(BIGINT),
    "float": _cast_to(SqlType("FLOAT")),
    "double": _cast_to(DOUBLE),
    "string": _cast_to(STRING),
    # strings
    "upper": Function(1, 1, _strings("upper", 1, 0, STRING)),
    "ucase": Function(1, 1, _strings("upper", 1, 0, STRING)),
    "lower": Function(1, 1, _strings("lower", 1, 0, STRING)),
    "lcase": Function(1, 1, _strings("lower", 1, 0, STRING)),
    "initcap": Function(1, 1, _strings("initcap", 1, 0, STRING)),
    "reverse": Function(1, 1, _strings("reverse", 1, 0, STRING)),
    "length": Function(1, 1, _strings("length", 1, 0, INT)),
    "len": Function(1, 1, _strings("length", 1, 0, INT)),
    "char_length": Function(1, 1, _strings("length", 1, 0, INT)),
    "character_length": Function(1, 1, _strings("length", 1, 0, INT)),
    "ascii": Function(1, 1, _strings("ascii", 1, 0, INT)),
    "substring": Function(2, 3, _strings("substring", 1, 2, STRING)),
    "substr": Function(2, 3, _strings("substring", 1, 2, STRING)),
    "trim": Function(1, 1, _two_trim("trim")),
    "btrim": Function(1, 2, _two_trim("trim")),
    "ltrim": Function(1, 2, _two_trim("ltrim")),
    "rtrim": Function(1, 2, _two_trim("rtrim")),
    "replace": Function(2, 3, _replace),
    "lpad": Function(2, 3, _strings("lpad", 1, 1, STRING)),
    "rpad": Function(2, 3, _strings("rpad", 1, 1, STRING)),
    "left": Function(2, 2, _strings("left", 1, 1, STRING)),
    "right": Function(2, 2, _strings("right", 1, 1, STRING)),
    "repeat": Function(2, 2, _strings("repeat", 1, 1, STRING)),
    "instr": Function(2, 2, _strings("instr", 2, 0, INT)),
    "locate": Function(2, 3, _strings("locate", 2, 1, INT)),
    "position": Function(2, 3, _strings("locate", 2, 1, INT)),
    "charindex": Function(2, 3, _strings("locate", 2, 1, INT)),
    "split_part": Function(3, 3, _strings("split_part", 2, 1, STRING)),
    "startswith": Function(2, 2, _strings("startswith", 2, 0, BOOLEAN)),
    "endswith": Function(2, 2, _strings("endswith", 2, 0, BOOLEAN)),
    "contains": Function(2, 2, _strings("contains", 2, 0, BOOLEAN)),
    "like": Function(2, 3, _strings("like", 3, 0, BOOLEAN)),
    "ilike": Function(2, 3, _strings("ilike", 3, 0, BOOLEAN)),
    "rlike": Function(2, 2, _strings("rlike", 2, 0, BOOLEAN)),
    "regexp_like": Function(2, 2, _strings("rlike", 2, 0, BOOLEAN)),
    "concat": Function(1, _ANY, lambda *parts: call("concat", tuple(map(_string, parts)), STRING)),
    "concat_ws": Function(1, _ANY, _concat_ws),
}
"""Scalar functions by lower-case name."""

_PART_NAMES = {
    "year": "year", "years": "year", "quarter": "quarter", "month": "month", "months": "month",
    "week": "weekofyear", "weeks": "weekofyear", "day": "day", "days": "day",
    "dayofweek": "dayofweek", "dow": "dayofweek", "doy": "dayofyear",
    "hour": "hour", "hours": "hour", "minute": "minute", "minutes": "minute",
    "second": "seconds_with_fraction", "seconds": "seconds_with_fraction",
}  # fmt: skip

_PARTS = frozenset(("year", "quarter", "month", "weekofyear", "day", "dayofweek", "dayofyear", "hour", "minute"))
