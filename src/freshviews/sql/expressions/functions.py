"""Lists the scalar functions of SQL in a table.

For each name of a function, the table has the accepted numbers of arguments, and the builder of a call's expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import e, pi

from freshviews.catalog.catalog import near
from freshviews.catalog.known_functions import function_names
from freshviews.catalog.rings import aggregates_over
from freshviews.expr.formats.json_texts import path_of
from freshviews.expr.formats.number_formats import Format, format_of
from freshviews.expr.nodes import Expr, Literal
from freshviews.records import dataclass
from freshviews.sql.expressions import arithmetic, dates, intervals, logic, numeric, times
from freshviews.sql.expressions.attempts import try_cast
from freshviews.sql.expressions.build import VOID, Fault, Refusal, call, integer, null, retyped, text
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.coerce import as_decimal, common
from freshviews.sql.text.refuse import AGGREGATES, GROUPINGS, REFUSED_FUNCTIONS
from freshviews.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    SqlType,
    decimal,
    declared_decimal,
)

_ANY = 1_000_000


@dataclass(frozen=True)
class Function:
    """A scalar function: the least and greatest number of arguments, and a function that makes its expression."""

    least: int
    greatest: int
    make: Callable[..., Expr]


def scalar(name: str, args: Sequence[Expr]) -> Expr:
    """The call of a function by its lower-case name. Raises ``Fault`` or ``Refusal``."""
    if name in REFUSED_FUNCTIONS:
        raise Refusal(*REFUSED_FUNCTIONS[name])
    function = FUNCTIONS.get(name)
    if function is None:
        known = near(name, (*FUNCTIONS, *AGGREGATES, *aggregates_over(), *function_names()))
        raise Refusal(
            f"function {name}",
            f"it is not one of the {len(FUNCTIONS)} accepted functions{known}; to define your own, write CREATE "
            "FUNCTION, or in this process call Database.function or freshviews.register_function; for an aggregate "
            "call Database.aggregate or freshviews.register_aggregate; for a ring call freshviews.register_ring, "
            "also in a module that FRESHVIEWS_RINGS names",
        )
    if not function.least <= len(args) <= function.greatest:
        raise Fault(f"{name} takes {_counted(function)}, not {len(args)}")
    return function.make(*args)


def _counted(function: Function) -> str:
    """The accepted numbers of arguments, in words."""
    least, greatest = function.least, function.greatest
    if greatest == _ANY:
        return f"{least} or more arguments"
    counts = f"{least}" if least == greatest else f"{least} {'or' if greatest == least + 1 else 'to'} {greatest}"
    return f"{counts} argument{'s' * (greatest != 1)}"


def date_part(part: str, moment: Expr) -> Expr:
    """EXTRACT(part FROM moment) and date_part; also of an interval."""
    if moment.type.is_interval:
        return intervals.field_of(part, moment)
    make = DATE_FIELDS.get(part.lower())
    if make is None:
        raise Refusal(f"the field {part.upper()}", f"accepted: {', '.join(p.upper() for p in DATE_FIELDS)}")
    return make(moment)


def _seconds(moment: Expr) -> Expr:
    """The seconds within a minute, with their fraction."""
    micros = call("pmod_int", (dates.moment_of(moment, TIMESTAMP), integer(60_000_000)), BIGINT)
    return retyped(micros, decimal(8, 6))


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
    if not (value.type.is_numeric or value.type == STRING):
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


def _sign(value: Expr) -> Expr:
    value = value if value.type.is_interval else arithmetic.numeric("sign", value)
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
    """log(x) is the natural logarithm; log(base, x) has a base."""
    if value is None:
        return _double("ln")(base)
    return call("quotient_float", (_double("ln")(value), _double("ln")(base)), DOUBLE)


def _replace(value: Expr, search: Expr, by: Expr | None = None) -> Expr:
    return call("replace", (_string(value), _string(search), text("") if by is None else _string(by)), STRING)


def _hex(value: Expr) -> Expr:
    if value.type == BINARY:
        return call("hex_bytes", (value,), STRING)
    if value.type.is_numeric:
        return call("hex_int", (cast(value, BIGINT),), STRING)
    return call("hex_string", (_string(value),), STRING)


def _concat_ws(separator: Expr, *rest: Expr) -> Expr:
    return call("concat_ws", (_string(separator), *map(_string, rest)), STRING)


def _extreme(which: str) -> Callable[..., Expr]:
    return lambda *values: logic.extreme(which, values)


def _two_trim(op: str) -> Callable[..., Expr]:
    """ltrim and rtrim take the characters first, btrim takes them last, as in Spark."""

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
    a, b = (value if value.type.is_float else cast(arithmetic.numeric("nanvl", value), DOUBLE) for value in (a, b))
    return logic.choose([(_isnan(a), b)], a)


def _scaled_by(factor: float) -> Function:
    value = Literal(factor, DOUBLE)
    return Function(1, 1, lambda x: call("mul_float", (cast(arithmetic.numeric("degrees", x), DOUBLE), value), DOUBLE))


def _bits(op: str) -> Callable[[Expr, Expr], Expr]:
    def make(a: Expr, b: Expr) -> Expr:
        if STRING in (a.type, b.type) and a.type != b.type:
            a, b = (cast(one, BIGINT) if one.type == STRING else one for one in (a, b))
        to = common(a.type, b.type)
        if to is None or not to.is_integer:
            raise Fault(f"bit operations take integers, not {a.type} and {b.type}")
        return call(op, (cast(a, to), cast(b, to)), to)

    return make


bits_and, bits_or, bits_xor = map(_bits, ("bits_and", "bits_or", "bits_xor"))


def bits_not(a: Expr) -> Expr:
    if a.type == STRING:
        raise Fault("bit operations take integers, not STRING")
    return bits_xor(a, Literal(-1, a.type if a.type.is_integer else INT))


def _parsed(op: str, to: SqlType, by_text: bool = False) -> Callable[..., Expr]:
    """to_date or to_timestamp, with or without a pattern; ``op`` reads a string by a pattern. ``by_text``: a number or
    a BOOLEAN is read as its text."""

    def make(value: Expr, pattern: Expr | None = None) -> Expr:
        if by_text and (value.type.is_numeric or value.type == BOOLEAN):
            value = cast(value, STRING)
        if pattern is None:
            return try_cast(value, to) if op.startswith("try_") else cast(value, to)
        return cast(times.parsed(op)(value, pattern), to)

    return make


def _either_diff(*args: Expr) -> Expr:
    return dates.date_diff(*args) if len(args) == 2 else times.difference(*args)


def _hashed(op: str, result: SqlType) -> Callable[..., Expr]:
    """A hash of the bytes of a string or a BINARY value; ``bits`` of sha2."""

    def make(value: Expr, *bits: Expr) -> Expr:
        charset = (text("latin-1"),) if value.type == BINARY else ()
        return call(op, (value if charset else _string(value), *map(_int, bits), *charset), result)

    return make


def _bytes(value: Expr) -> Expr:
    return value if value.type == BINARY else cast(_string(value), BINARY)


def _bitmap_count(value: Expr) -> Expr:
    if value.type not in (BINARY, VOID):
        raise Fault(f"bitmap_count takes a BINARY, not {value.type}")
    return call("bit_count_bytes", (cast(value, BINARY),), BIGINT)


def _for_bytes(op: str, otherwise: Callable[..., Expr], result: SqlType = BINARY) -> Callable[..., Expr]:
    """A function that works on the bytes of a BINARY value as on the characters of a string."""

    def make(value: Expr, *ints: Expr) -> Expr:
        return call(op, (value, *map(_int, ints)), result) if value.type == BINARY else otherwise(value, *ints)

    return make


def _of_two(op: str, ints: int, result: SqlType) -> Callable[..., Expr]:
    """An operation of two strings, or on the bytes of two BINARY values."""

    def make(one: Expr, other: Expr, *rest: Expr) -> Expr:
        if not one.type == other.type == BINARY:
            return _strings(op, 2, ints, result)(one, other, *rest)
        return call(op, (one, other, *map(_int, rest)), BINARY if result == STRING else result)

    return make


def _bit_length(value: Expr) -> Expr:
    if value.type == BINARY:
        return retyped(call("mul_int", (call("length", (value,), BIGINT), integer(8)), BIGINT), INT)
    return _strings("bit_length", 1, 0, INT)(value)


def _padded(op: str) -> Callable[..., Expr]:
    def make(value: Expr, *rest: Expr) -> Expr:
        if value.type == BINARY and all(pad.type == BINARY for pad in rest[1:]):
            return call(op, (value, _int(rest[0]), *(rest[1:] or (Literal("\0", BINARY),))), BINARY)
        return _strings(op, 1, 1, STRING)(value, *rest)

    return make


def concatenated(*parts: Expr) -> Expr:
    """concat and ||: BINARY if all parts are, else a STRING."""
    if all(part.type == BINARY for part in parts):
        return call("concat", parts, BINARY)
    return call("concat", tuple(map(_string, parts)), STRING)


def _to_binary(op: str) -> Callable[..., Expr]:
    def make(value: Expr, form: Expr | None = None) -> Expr:
        form = text("hex") if form is None else cast(form, STRING)
        if not isinstance(form, Literal):
            raise Refusal(f"{op} with a form that is not a constant", "write 'hex', 'base64' or 'utf-8'")
        name = None if form.value is None else str(form.value).lower()
        if name not in (None, "hex", "base64", "utf-8", "utf8"):
            raise Fault(f"{op} takes the form 'hex', 'base64' or 'utf-8', not {form.value!r}")
        return call(op, (_string(value), Literal(name, STRING)), BINARY)

    return make


_HASHED = {"BOOLEAN": "i", "TINYINT": "i", "SMALLINT": "i", "INT": "i", "DATE": "i", "BIGINT": "l", "TIMESTAMP": "l"}
_HASHED |= {"FLOAT": "f", "DOUBLE": "d", "STRING": "s", "VOID": "i"}


def _hash(op: str, result: SqlType) -> Callable[..., Expr]:
    """A hash of values of any types, whose letters are those of ``freshviews.expr.hashes``."""

    def make(*values: Expr) -> Expr:
        letters = "".join(map(_letter, values))
        return call(op, (text(letters), *(null(INT) if v.type == VOID else v for v in values)), result)

    return make


def _letter(value: Expr) -> str:
    if value.type.is_decimal:
        return "l" if value.type.precision <= 18 else "w"
    if value.type.is_interval:
        return "i" if value.type.is_months else "l"
    return "b" if value.type == BINARY else _HASHED[value.type.name]


def _is_text(value: Expr) -> Expr:
    if value.type == BINARY:
        return logic.compare("=", value, cast(cast(value, STRING), BINARY))
    known = call("is_not_null", (_string(value),), BOOLEAN)
    return logic.choose([(known, Literal(True, BOOLEAN))], null(BOOLEAN))


def _checked_text(value: Expr) -> Expr:
    return call("decode", (value, text("utf-8")), STRING) if value.type == BINARY else _string(value)


def _text_if_valid(value: Expr) -> Expr:
    return logic.choose([(_is_text(value), _string(value))], null(STRING)) if value.type == BINARY else _string(value)


def _mask(value: Expr, *by: Expr) -> Expr:
    """mask(text, upper, lower, digit, other): NULL keeps a class of characters."""
    given = [*map(_string, by), *(text("Xxn"[i]) if i < 3 else null(STRING) for i in range(len(by), 4))]
    for one in given:
        if not isinstance(one, Literal) or (isinstance(one.value, str) and len(one.value) != 1):
            raise Fault("mask takes constants of one character, or NULL, for upper, lower, digits and others")
    return call("mask", (_string(value), *given), STRING)


def _levenshtein(one: Expr, other: Expr, *most: Expr) -> Expr:
    """A limit that is NULL counts as 0."""
    limit = (logic.first_of((_int(given), Literal(0, INT))) for given in most)
    return call("levenshtein", (_string(one), _string(other), *limit), INT)


def _regexp_instr(value: Expr, pattern: Expr, group: Expr | None = None) -> Expr:
    found = call("regexp_instr", (_string(value), _string(pattern)), INT)
    if group is None:
        return found
    return logic.choose([(call("is_not_null", (_int(group),), BOOLEAN), found)], null(INT))


def _format_number(value: Expr, how: Expr) -> Expr:
    if not value.type.is_numeric and value.type != VOID:
        raise Fault(f"format_number takes a number, not {value.type}")
    number = cast(value, DOUBLE) if value.type.is_float or value.type == VOID else value
    digits = how if how.type == STRING else _int(how)
    return call("format_number", (number, integer(number.type.scale), digits), STRING)


_PRINTED = {"BOOLEAN": "b", "TINYINT": "y", "SMALLINT": "h", "INT": "i", "DATE": "i", "BIGINT": "l", "TIMESTAMP": "l"}
_PRINTED |= {"FLOAT": "f", "DOUBLE": "d", "STRING": "s", "DECIMAL": "n", "VOID": "v"}


def _format_string(form: Expr, *values: Expr) -> Expr:
    """format_string and printf; the letters of types are those of ``freshviews.expr.formats.number_formats``."""
    if any(value.type == BINARY for value in values):
        raise Refusal("format_string of BINARY", "write hex(x), base64(x) or decode(x, 'UTF-8')")
    letters = "".join("l" if value.type.is_interval else _PRINTED[value.type.name] for value in values)
    printed = [_string(value) if value.type.is_decimal else value for value in values]
    given = [null(STRING) if value.type == VOID else value for value in printed]
    return call("format_string", (text(letters), _string(form), *given), STRING)


def _raise_error(message: Expr) -> Expr:
    return call("raise_error", (_string(message),), VOID)


def _assert_true(condition: Expr, message: Expr | None = None) -> Expr:
    said = text("assert_true: the condition is not true") if message is None else message
    holds = logic.condition(condition, "assert_true")
    return logic.choose([(holds, null(VOID))], _raise_error(said))


def _format(function: str, form: Expr) -> tuple[Literal, Format | None]:
    """A constant format of numbers; None for NULL."""
    form = cast(form, STRING)
    if not isinstance(form, Literal):
        raise Refusal(f"{function} with a format that is not a constant", "write the format, as in '999.99'")
    if form.value is None:
        return form, None
    try:
        return form, format_of(str(form.value))
    except ValueError as error:
        raise Fault(str(error)) from None


def _to_number(function: str) -> Callable[[Expr, Expr], Expr]:
    def make(value: Expr, form: Expr) -> Expr:
        given, known = _format(function, form)
        if known is None:
            return null(decimal(10, 0))
        if known.whole + known.scale > 38:
            raise Fault(f"{function}: a format has at most 38 digits")
        return call(function, (_string(value), given), declared_decimal(known.whole + known.scale, known.scale))

    return make


def _to_char(value: Expr, form: Expr) -> Expr:
    """A number, a date or moment, or a BINARY value, printed in a format."""
    if value.type == STRING:
        raise Refusal("to_char of a STRING", "CAST it to a DECIMAL, a DATE or a TIMESTAMP")
    if value.type == BINARY:
        name = str(form.value).lower() if isinstance(form, Literal) else ""
        if name not in ("hex", "base64", "utf-8", "utf8"):
            raise Fault("to_char of BINARY takes the format 'hex', 'base64' or 'utf-8'")
        return call({"hex": "hex_bytes", "base64": "base64"}.get(name, "string_of_bytes"), (value,), STRING)
    if not value.type.is_numeric:
        return dates.date_format(value, form)
    given, known = _format("to_char", form)
    if known is None:
        return null(STRING)
    if value.type.is_float:
        return call("float_to_char", (value, integer(as_decimal(value.type).scale), given), STRING)
    return call("number_to_char", (value, integer(value.type.scale), given), STRING)


def _conv(value: Expr, source: Expr, target: Expr) -> Expr:
    return call("conv", (_string(value), _int(source), _int(target)), STRING)


def _bin(value: Expr) -> Expr:
    return call("bin", (cast(arithmetic.numeric("bin", value), BIGINT),), STRING)


def _elt(number: Expr, *texts: Expr) -> Expr:
    return call("elt", (_int(number), *map(_string, texts)), STRING)


def _typeof(value: Expr) -> Expr:
    return text(str(value.type).lower().replace(", ", ","))


def _of_json(op: str, result: SqlType) -> Callable[..., Expr]:
    """A function of texts of JSON, which no other value is cast to."""

    def make(*args: Expr) -> Expr:
        other = next((arg.type for arg in args if arg.type not in (STRING, VOID)), None)
        if other is not None:
            raise Fault(f"{op} takes a STRING, not {other}")
        if op == "get_json_object" and isinstance(args[1], Literal) and isinstance(args[1].value, str):
            try:
                path_of(args[1].value)
            except ValueError as error:
                raise Fault(str(error)) from None
        return call(op, tuple(map(_string, args)), result)

    return make


def _decode(value: Expr, *rest: Expr) -> Expr:
    """decode(value, a, x, b, y, ..., otherwise): NULL equals NULL. With two arguments: bytes in a charset as a text."""
    if len(rest) == 1:
        return call("decode", (_bytes(value), _string(rest[0])), STRING)
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    otherwise = rest[-1] if len(rest) % 2 else null(VOID)
    return logic.choose([(logic.null_safe_equal(value, when), then) for when, then in pairs], otherwise)


LAZY = frozenset(("coalesce", "nvl", "ifnull", "nvl2", "if", "iff", "decode"))
"""Functions that evaluate their arguments after the first one for some rows only."""

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
    "raise_error": Function(1, 1, _raise_error),
    "assert_true": Function(1, 2, _assert_true),
    "nanvl": Function(2, 2, _nanvl),
    "decode": Function(2, _ANY, _decode),
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
    "round": Function(1, 2, numeric.rounded("round", "round_float", "scale_down")),
    "floor": Function(1, 2, numeric.toward("floor")),
    "ceil": Function(1, 2, numeric.toward("ceil")),
    "ceiling": Function(1, 2, numeric.toward("ceil")),
    "sqrt": Function(1, 1, _double("sqrt")),
    "exp": Function(1, 1, _double("exp")),
    "ln": Function(1, 1, _double("ln")),
    "log": Function(1, 2, _log),
    "log10": Function(1, 1, _double("log10")),
    "power": Function(2, 2, _double("power")),
    "pow": Function(2, 2, _double("power")),
    "log2": Function(1, 1, _double("log2")),
    "log1p": Function(1, 1, _double("log1p")),
    "expm1": Function(1, 1, _double("expm1")),
    "cbrt": Function(1, 1, _double("cbrt")),
    "asin": Function(1, 1, _double("asin")),
    "acos": Function(1, 1, _double("acos")),
    "atan": Function(1, 1, _double("atan")),
    "atan2": Function(2, 2, _double("atan2")),
    "tanh": Function(1, 1, _double("tanh")),
    "degrees": _scaled_by(180 / pi),
    "radians": _scaled_by(pi / 180),
    "pi": Function(0, 0, lambda: Literal(pi, DOUBLE)),
    "e": Function(0, 0, lambda: Literal(e, DOUBLE)),
    "positive": Function(1, 1, arithmetic.positive),
    "div": Function(2, 2, arithmetic.integral_divide),
    "try_divide": Function(2, 2, numeric.unless_zero(arithmetic.divide)),
    "try_add": Function(2, 2, numeric.attempted("try_add", "add", arithmetic.add)),
    "try_subtract": Function(2, 2, numeric.attempted("try_subtract", "sub", arithmetic.subtract)),
    "try_multiply": Function(2, 2, numeric.attempted("try_multiply", "mul", arithmetic.multiply)),
    "try_mod": Function(2, 2, numeric.unless_zero(arithmetic.remainder)),
    "bround": Function(1, 2, numeric.rounded("bround", "round_float_even", "scale_down_even")),
    "rint": Function(1, 1, _double("rint")),
    "hypot": Function(2, 2, _double("hypot")),
    **{name: Function(1, 1, _double(name)) for name in ("sinh", "cosh", "asinh", "acosh", "atanh")},
    "sec": Function(1, 1, numeric.reciprocal("cos")),
    "csc": Function(1, 1, numeric.reciprocal("sin")),
    "cot": Function(1, 1, numeric.reciprocal("tan")),
    "factorial": Function(1, 1, lambda n: call("factorial", (_int(n),), BIGINT)),
    "width_bucket": Function(4, 4, numeric.width_bucket),
    "bit_count": Function(1, 1, numeric.bit_count),
    "bitmap_count": Function(1, 1, _bitmap_count),
    "bit_get": Function(2, 2, numeric.bit_get),
    "getbit": Function(2, 2, numeric.bit_get),
    "shiftleft": Function(2, 2, numeric.shift("shift_left")),
    "shiftright": Function(2, 2, numeric.shift("shift_right_signed")),
    "shiftrightunsigned": Function(2, 2, numeric.shift("shift_right_unsigned")),
    "bitmap_bucket_number": Function(1, 1, numeric.bitmap_bucket_number),
    "bitmap_bit_position": Function(1, 1, numeric.bitmap_bit_position),
    "sin": Function(1, 1, _double("sin")),
    "cos": Function(1, 1, _double("cos")),
    "tan": Function(1, 1, _double("tan")),
    # dates and times
    **{name: Function(1, 1, dates.part(name)) for name in dates.DATE_PARTS},
    **{name: Function(1, 1, dates.clock(name)) for name in ("hour", "minute", "second")},
    "dayofmonth": Function(1, 1, dates.part("day")),
    "last_day": Function(1, 1, dates.last_day),
    "week": Function(1, 1, dates.part("weekofyear")),
    "date_add": Function(2, 3, dates.date_add),
    "dateadd": Function(2, 3, dates.date_add),
    "timestampadd": Function(3, 3, dates.date_add),
    "date_sub": Function(2, 2, dates.date_sub),
    "datediff": Function(2, 3, _either_diff),
    "date_diff": Function(2, 3, _either_diff),
    "timestampdiff": Function(3, 3, times.difference),
    "months_between": Function(2, 2, times.months_between),
    "next_day": Function(2, 2, times.next_day),
    "make_date": Function(3, 3, times.make_date),
    "make_dt_interval": Function(0, 4, intervals.make_dt_interval),
    "make_ym_interval": Function(0, 2, intervals.make_ym_interval),
    "add_months": Function(2, 2, dates.add_months),
    "trunc": Function(2, 2, dates.trunc),
    "date_trunc": Function(2, 2, dates.date_trunc),
    "date_part": Function(2, 2, lambda part, moment: date_part(dates.word("date_part", part), moment)),
    "date_format": Function(2, 2, dates.date_format),
    "datepart": Function(2, 2, lambda part, moment: date_part(dates.word("datepart", part), moment)),
    "unix_timestamp": Function(1, 2, times.unix_timestamp),
    "to_unix_timestamp": Function(1, 2, times.unix_timestamp),
    "make_timestamp": Function(6, 6, times.make_timestamp),
    "make_timestamp_ntz": Function(6, 6, times.make_timestamp),
    "try_make_timestamp": Function(6, 6, times.try_make_timestamp),
    "try_make_timestamp_ntz": Function(6, 6, times.try_make_timestamp),
    "from_utc_timestamp": Function(2, 2, times.in_zone("from_utc_timestamp")),
    "to_utc_timestamp": Function(2, 2, times.in_zone("to_utc_timestamp")),
    "convert_timezone": Function(3, 3, times.convert_timezone),
    "timestamp_seconds": Function(1, 1, times.timestamp_seconds),
    "unix_seconds": Function(1, 1, times.unix(1_000_000)),
    "unix_millis": Function(1, 1, times.unix(1_000)),
    "unix_micros": Function(1, 1, times.unix(1)),
    "unix_date": Function(1, 1, lambda day: retyped(dates.moment_of(day, DATE), INT)),
    "date_from_unix_date": Function(1, 1, lambda n: retyped(arithmetic.number("date_from_unix_date", n, INT), DATE)),
    "timestamp_millis": Function(1, 1, times.since_epoch(1_000)),
    "timestamp_micros": Function(1, 1, times.since_epoch(1)),
    "from_unixtime": Function(1, 2, times.from_unixtime),
    "to_char": Function(2, 2, _to_char),
    "to_varchar": Function(2, 2, _to_char),
    "to_number": Function(2, 2, _to_number("to_number")),
    "try_to_number": Function(2, 2, _to_number("try_to_number")),
    "dayname": Function(1, 1, lambda day: dates.date_format(day, text("E"))),
    "monthname": Function(1, 1, lambda day: dates.date_format(day, text("MMM"))),
    "date_bin": Function(2, 3, times.date_bin),
    "time_bucket": Function(2, 3, times.time_bucket),
    "tumble_start": Function(2, 3, times.tumble),
    "hop_start": Function(4, 5, times.hop),
    "try_to_date": Function(1, 2, _parsed("try_parse_timestamp", DATE)),
    "try_to_timestamp": Function(1, 2, _parsed("try_parse_timestamp", TIMESTAMP)),
    "to_date": Function(1, 2, _parsed("parse_timestamp", DATE)),
    "date": _cast_to(DATE),
    "to_timestamp": Function(1, 2, _parsed("parse_timestamp", TIMESTAMP)),
    "to_timestamp_ntz": Function(1, 2, _parsed("parse_timestamp", TIMESTAMP, by_text=True)),
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
    "binary": _cast_to(BINARY),
    "decimal": _cast_to(decimal(10, 0)),
    # strings
    "upper": Function(1, 1, _strings("upper", 1, 0, STRING)),
    "ucase": Function(1, 1, _strings("upper", 1, 0, STRING)),
    "lower": Function(1, 1, _strings("lower", 1, 0, STRING)),
    "lcase": Function(1, 1, _strings("lower", 1, 0, STRING)),
    "initcap": Function(1, 1, _strings("initcap", 1, 0, STRING)),
    "reverse": Function(1, 1, _strings("reverse", 1, 0, STRING)),
    "length": Function(1, 1, _for_bytes("length", _strings("length", 1, 0, INT), INT)),
    "len": Function(1, 1, _for_bytes("length", _strings("length", 1, 0, INT), INT)),
    "char_length": Function(1, 1, _for_bytes("length", _strings("length", 1, 0, INT), INT)),
    "character_length": Function(1, 1, _for_bytes("length", _strings("length", 1, 0, INT), INT)),
    "ascii": Function(1, 1, _strings("ascii", 1, 0, INT)),
    "substring": Function(2, 3, _for_bytes("substring", _strings("substring", 1, 2, STRING))),
    "substr": Function(2, 3, _for_bytes("substring", _strings("substring", 1, 2, STRING))),
    "trim": Function(1, 1, _two_trim("trim")),
    "btrim": Function(1, 2, _two_trim("trim")),
    "ltrim": Function(1, 2, _two_trim("ltrim")),
    "rtrim": Function(1, 2, _two_trim("rtrim")),
    "replace": Function(2, 3, _replace),
    "lpad": Function(2, 3, _padded("lpad")),
    "rpad": Function(2, 3, _padded("rpad")),
    "left": Function(2, 2, _for_bytes("left", _strings("left", 1, 1, STRING))),
    "right": Function(2, 2, _strings("right", 1, 1, STRING)),
    "repeat": Function(2, 2, _strings("repeat", 1, 1, STRING)),
    "instr": Function(2, 2, _strings("instr", 2, 0, INT)),
    "locate": Function(2, 3, _strings("locate", 2, 1, INT)),
    "position": Function(2, 3, _strings("locate", 2, 1, INT)),
    "charindex": Function(2, 3, _strings("locate", 2, 1, INT)),
    "split_part": Function(3, 3, _strings("split_part", 2, 1, STRING)),
    "split_index": Function(3, 3, _strings("split_at", 2, 1, STRING)),
    "strpos": Function(2, 2, _strings("instr", 2, 0, INT)),
    "translate": Function(3, 3, _strings("translate", 3, 0, STRING)),
    "substring_index": Function(3, 3, _strings("substring_index", 2, 1, STRING)),
    "space": Function(1, 1, lambda n: call("repeat", (text(" "), _int(n)), STRING)),
    "chr": Function(1, 1, _strings("character", 0, 1, STRING)),
    "char": Function(1, 1, _strings("character", 0, 1, STRING)),
    "octet_length": Function(1, 1, _for_bytes("length", _strings("octet_length", 1, 0, INT), INT)),
    "bit_length": Function(1, 1, _bit_length),
    "elt": Function(2, _ANY, _elt),
    "find_in_set": Function(2, 2, _strings("find_in_set", 2, 0, INT)),
    "levenshtein": Function(2, 3, _levenshtein),
    "luhn_check": Function(1, 1, _strings("luhn_check", 1, 0, BOOLEAN)),
    "mask": Function(1, 5, _mask),
    "overlay": Function(3, 4, _of_two("overlay", 2, STRING)),
    "quote": Function(1, 1, _strings("quote", 1, 0, STRING)),
    "soundex": Function(1, 1, _strings("soundex", 1, 0, STRING)),
    "is_valid_utf8": Function(1, 1, _is_text),
    "make_valid_utf8": Function(1, 1, _string),
    "validate_utf8": Function(1, 1, _checked_text),
    "try_validate_utf8": Function(1, 1, _text_if_valid),
    "typeof": Function(1, 1, _typeof),
    "format_number": Function(2, 2, _format_number),
    "format_string": Function(1, _ANY, _format_string),
    "printf": Function(1, _ANY, _format_string),
    "conv": Function(3, 3, _conv),
    "bin": Function(1, 1, _bin),
    "hex": Function(1, 1, _hex),
    "unhex": Function(1, 1, _strings("unhex", 1, 0, BINARY)),
    "base64": Function(1, 1, lambda value: call("base64", (_bytes(value),), STRING)),
    "unbase64": Function(1, 1, _strings("unbase64", 1, 0, BINARY)),
    "encode": Function(2, 2, _strings("encode", 2, 0, BINARY)),
    "to_binary": Function(1, 2, _to_binary("to_binary")),
    "try_to_binary": Function(1, 2, _to_binary("try_to_binary")),
    "md5": Function(1, 1, _hashed("md5", STRING)),
    "sha": Function(1, 1, _hashed("sha1", STRING)),
    "sha1": Function(1, 1, _hashed("sha1", STRING)),
    "sha2": Function(2, 2, _hashed("sha2", STRING)),
    "crc32": Function(1, 1, _hashed("crc32", BIGINT)),
    "hash": Function(1, _ANY, _hash("hash", INT)),
    "xxhash64": Function(1, _ANY, _hash("xxhash64", BIGINT)),
    "parse_url": Function(2, 3, _strings("parse_url", 3, 0, STRING)),
    "try_parse_url": Function(2, 3, _strings("try_parse_url", 3, 0, STRING)),
    "url_encode": Function(1, 1, _strings("url_encode", 1, 0, STRING)),
    "url_decode": Function(1, 1, _strings("url_decode", 1, 0, STRING)),
    "try_url_decode": Function(1, 1, _strings("try_url_decode", 1, 0, STRING)),
    "get_json_object": Function(2, 2, _of_json("get_json_object", STRING)),
    "json_array_length": Function(1, 1, _of_json("json_array_length", INT)),
    "regexp_extract": Function(2, 3, _strings("regexp_extract", 2, 1, STRING)),
    "regexp_replace": Function(3, 4, _strings("regexp_replace", 3, 1, STRING)),
    "regexp_instr": Function(2, 3, _regexp_instr),
    "regexp_count": Function(2, 2, _strings("regexp_count", 2, 0, INT)),
    "regexp_substr": Function(2, 2, _strings("regexp_substr", 2, 0, STRING)),
    "starts_with": Function(2, 2, _of_two("startswith", 0, BOOLEAN)),
    "ends_with": Function(2, 2, _of_two("endswith", 0, BOOLEAN)),
    "startswith": Function(2, 2, _of_two("startswith", 0, BOOLEAN)),
    "endswith": Function(2, 2, _of_two("endswith", 0, BOOLEAN)),
    "contains": Function(2, 2, _of_two("contains", 0, BOOLEAN)),
    "like": Function(2, 3, _strings("like", 3, 0, BOOLEAN)),
    "ilike": Function(2, 3, _strings("ilike", 3, 0, BOOLEAN)),
    "rlike": Function(2, 2, _strings("rlike", 2, 0, BOOLEAN)),
    "regexp": Function(2, 2, _strings("rlike", 2, 0, BOOLEAN)),
    "regexp_like": Function(2, 2, _strings("rlike", 2, 0, BOOLEAN)),
    "concat": Function(1, _ANY, concatenated),
    "concat_ws": Function(1, _ANY, _concat_ws),
}
"""Scalar functions by lower-case name."""

DATE_FIELDS: dict[str, Callable[[Expr], Expr]] = {
    **dict.fromkeys(("year", "years"), dates.part("year")),
    "quarter": dates.part("quarter"),
    **dict.fromkeys(("month", "months"), dates.part("month")),
    **dict.fromkeys(("week", "weeks"), dates.part("weekofyear")),
    **dict.fromkeys(("day", "days"), dates.part("day")),
    **dict.fromkeys(("dayofweek", "dow"), dates.part("dayofweek")),
    **dict.fromkeys(("dayofweek_iso", "dow_iso", "isodow"), times.isodow),
    **dict.fromkeys(("dayofyear", "doy"), dates.part("dayofyear")),
    **dict.fromkeys(("yearofweek", "isoyear"), times.isoyear),
    **dict.fromkeys(("hour", "hours"), dates.clock("hour")),
    **dict.fromkeys(("minute", "minutes"), dates.clock("minute")),
    **dict.fromkeys(("second", "seconds"), _seconds),
    **dict.fromkeys(("millisecond", "milliseconds"), times.within_minute(1_000)),
    **dict.fromkeys(("microsecond", "microseconds"), times.within_minute(1)),
    "epoch": times.epoch,
    "decade": times.years_by(10, 0),
    "century": times.years_by(100, 99),
    "millennium": times.years_by(1000, 999),
}
"""The fields of EXTRACT and date_part."""

_OWN_SYNTAX = (
    "cast try_cast extract trim position substring substr floor case if exists any some all in not and or between "
    "row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value"
)
FUNCTION_NAMES = frozenset((*FUNCTIONS, *AGGREGATES, *GROUPINGS, *REFUSED_FUNCTIONS, *_OWN_SYNTAX.split()))
"""Names that mean something in SQL, in lower case: no ring has one of them."""
