"""Binds comparisons, AND, OR, NOT and CASE, and functions that consist of these, such as COALESCE and GREATEST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from freshviews.catalog.definitions import ColumnDef
from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.sql.expressions.build import FALSE, TRUE, VOID, Fault, call, integer, null, retyped
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.coerce import common
from freshviews.types import BOOLEAN, STRING, SqlType

COMPARISONS = {"=": "eq", "<>": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def compare(sign: str, a: Expr, b: Expr) -> Expr:
    """One of = <> < <= > >=. Strings are ordered by their UTF-8 bytes."""
    exact = _of_two_scales(sign, a, b)
    if exact is not None:
        return exact
    a, b, to = alike((a, b), f"{a.type} {sign} {b.type}")
    op = COMPARISONS[sign]
    if to.is_float:
        return call(f"{op}_float", (a, b), BOOLEAN)
    if to.name == STRING.name and op not in ("eq", "ne"):
        return call(f"{op}_string", (a, b), BOOLEAN)
    return call(op, (a, b), BOOLEAN)


_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STRICT = {"<": "<=", ">=": ">"}
"""Maps a sign beside a constant with a fraction to the sign beside the next lower integer."""


def _of_two_scales(sign: str, a: Expr, b: Expr) -> Expr | None:
    """A comparison of integers or decimals of different scales that never overflows, because it scales neither column
    up; None if the common type is another one, or nothing can overflow."""
    if not (_is_exact(a) and _is_exact(b)) or a.type.scale == b.type.scale:
        return None
    if isinstance(a, Literal) or (not isinstance(b, Literal) and a.type.scale > b.type.scale):
        a, b, sign = b, a, _TURNED[sign]
    to = common(a.type, b.type)
    if to is None or to.scale < max(a.type.scale, b.type.scale):
        return None
    if to.wide and not isinstance(b, Literal):
        return None
    if isinstance(b, Literal):
        return _beside(sign, a, b)
    factor = 10 ** (b.type.scale - a.type.scale)
    if a.type.bounds[1] * factor < 2**63:
        return None
    below, above = (call(op, (b, integer(factor)), a.type) for op in ("floor_decimal", "ceil_decimal"))
    if sign in ("=", "<>"):
        equal = both(call("eq", (a, below), BOOLEAN), call("eq", (a, above), BOOLEAN))
        return equal if sign == "=" else negation(equal)
    return call(COMPARISONS[sign], (a, above if sign in ("<", ">=") else below), BOOLEAN)


def _is_exact(value: Expr) -> bool:
    return (value.type.is_integer or value.type.is_decimal) and not (isinstance(value, Literal) and value.value is None)


def _beside(sign: str, value: Expr, constant: Literal) -> Expr:
    """A value compared with a constant, at the scale of the value."""
    up = value.type.scale - constant.type.scale
    unscaled = int(constant.value) * 10 ** max(up, 0)  # type: ignore[arg-type]
    whole, rest = divmod(unscaled, 10 ** max(-up, 0))
    if (value.type.wide or abs(whole) < 2**63) and not (rest and sign in ("=", "<>")):
        op = COMPARISONS[_STRICT.get(sign, sign) if rest else sign]
        return call(op, (value, Literal(whole, value.type)), BOOLEAN)
    holds = sign == "<>" or sign in (("<", "<=") if whole > 0 else (">", ">="))
    if not value.nullable:
        return TRUE if holds else FALSE
    never = call("ne", (value, value), BOOLEAN)  # NULL where the value is
    return negation(never) if holds else never


def null_safe_equal(a: Expr, b: Expr) -> Expr:
    """``<=>``: NULL equals NULL, and the answer is never NULL."""
    equal = _of_two_scales("=", a, b)
    if equal is not None:
        unknown = both(call("is_null", (a,), BOOLEAN), call("is_null", (b,), BOOLEAN))
        return either(call("is_true", (equal,), BOOLEAN), unknown)
    a, b, _ = alike((a, b), f"{a.type} <=> {b.type}")
    if not a.nullable and not b.nullable:
        return compare("=", a, b)
    return call("null_safe_eq", (a, b), BOOLEAN)


def alike(values: Sequence[Expr], what: str) -> tuple[Expr, Expr, SqlType]:
    """Two values cast to their common type, and this type."""
    to = common_type(values, what)
    return cast(values[0], to), cast(values[1], to), to


def common_type(values: Sequence[Expr | ColumnDef], what: str) -> SqlType:
    """The least common type of all values, in order. Raises ``Fault`` if there is none."""
    to: SqlType = VOID
    for value in values:
        wider = common(to, value.type)
        if wider is None:
            raise Fault(f"{what}: {to} and {value.type} have no common type; CAST one of them")
        to = wider
    return to


def condition(expr: Expr, what: str) -> Expr:
    """The expression as a BOOLEAN."""
    if expr.type == VOID:
        return null(BOOLEAN)
    if expr.type != BOOLEAN:
        raise Fault(f"{what} takes a BOOLEAN, not {expr.type}")
    return expr


def both(a: Expr, b: Expr) -> Expr:
    a, b = condition(a, "AND"), condition(b, "AND")
    if a == TRUE or b == FALSE:
        return b
    if b == TRUE or a == FALSE:
        return a
    return call("and", (a, b), BOOLEAN)


def either(a: Expr, b: Expr) -> Expr:
    a, b = condition(a, "OR"), condition(b, "OR")
    if a == FALSE or b == TRUE:
        return b
    if b == FALSE or a == TRUE:
        return a
    return call("or", (a, b), BOOLEAN)


def negation(a: Expr) -> Expr:
    a = condition(a, "NOT")
    if isinstance(a, Call) and a.op == "not":
        return a.args[0]
    if isinstance(a, Call) and a.op in ("is_null", "is_not_null"):
        return call("is_null" if a.op == "is_not_null" else "is_not_null", a.args, BOOLEAN)
    return call("not", (a,), BOOLEAN)


SHORT = 16
"""Most terms of AND or OR that are joined one after the other; more become a balanced tree, which nests less."""


def one_of(terms: Sequence[Expr]) -> Expr:
    """OR of the terms."""
    return _joined(either, terms) if terms else FALSE


def _joined(join: Callable[[Expr, Expr], Expr], terms: Sequence[Expr]) -> Expr:
    if len(terms) <= SHORT:
        return reduce(join, terms)
    middle = len(terms) // 2
    return join(_joined(join, terms[:middle]), _joined(join, terms[middle:]))


def any_of(terms: Sequence[Expr]) -> Expr:
    """OR of the terms as a balanced tree, so that a long IN list does not nest deeply."""
    if len(terms) <= 2:
        return reduce(either, terms) if terms else FALSE
    middle = len(terms) // 2
    return either(any_of(terms[:middle]), any_of(terms[middle:]))


def conjuncts_of(expr: Expr) -> tuple[Expr, ...]:
    """The terms of a conjunction; conjuncts common to all branches of an OR become terms of their own."""
    if isinstance(expr, Call) and expr.op == "and":
        return (*conjuncts_of(expr.args[0]), *conjuncts_of(expr.args[1]))
    if isinstance(expr, Call) and expr.op == "or":
        left, right = (conjuncts_of(arg) for arg in expr.args)
        shared = tuple(term for term in left if term in right)
        if shared:
            rest = either(
                all_of([term for term in left if term not in shared]),
                all_of([term for term in right if term not in shared]),
            )
            return shared if rest == TRUE else (*shared, rest)
    return (expr,)


def all_of(terms: Sequence[Expr]) -> Expr:
    """AND of the terms."""
    return _joined(both, terms) if terms else TRUE


def choose(branches: Sequence[tuple[Expr, Expr]], otherwise: Expr) -> Expr:
    """CASE WHEN ... THEN ... ELSE ... END, with its values cast to one type."""
    to = common_type([*(value for _, value in branches), otherwise], "CASE")
    if to == VOID:
        if all(isinstance(value, Literal) for value in (*(value for _, value in branches), otherwise)):
            return otherwise
        # One of them is raise_error, whose call has no type of its own.
        typed = [(when, retyped(value, BOOLEAN)) for when, value in branches]
        return retyped(choose(typed, retyped(otherwise, BOOLEAN)), VOID)
    args: list[Expr] = []
    last = cast(otherwise, to)
    for when, value in branches:
        when = condition(when, "WHEN")
        if isinstance(when, Literal) and when.value is not True:
            continue
        if when == TRUE:
            last = cast(value, to)
            break
        args += [when, cast(value, to)]
    return call("case", (*args, last), to) if args else last


def first_of(values: Sequence[Expr]) -> Expr:
    """COALESCE."""
    to = common_type(values, "COALESCE")
    kept: list[Expr] = []
    for value in values:
        made = cast(value, to)
        if isinstance(made, Literal) and made.value is None:
            continue
        kept.append(made)
        if not made.nullable:
            break
    if not kept:
        return null(to)
    return kept[0] if len(kept) == 1 else call("coalesce", tuple(kept), to)


def extreme(which: str, values: Sequence[Expr]) -> Expr:
    """GREATEST or LEAST, which skip NULLs."""
    to = common_type(values, which.upper())
    if to == VOID:
        return values[0]
    kind = "float" if to.is_float else "string" if to.name == STRING.name else "int"
    return reduce(lambda a, b: call(f"{which}_{kind}", (a, b), to), [cast(value, to) for value in values])


def as_boolean_code(flag: Expr, to: SqlType) -> Expr:
    """A condition as 1 if TRUE, and 0 if FALSE or NULL."""
    return retyped(call("is_true", (flag,), BOOLEAN) if flag.nullable else flag, to)
