"""Makes, tests and rewrites expression nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.ops import OPS, fails_itself, may_fail, wide_twin
from freshviews.expr.wide import TWINS, word_of
from freshviews.sql.expressions.fold import computed, is_computed
from freshviews.types import BIGINT, BOOLEAN, STRING, NotHeldError, SqlType, decimal

VOID = SqlType("VOID")
"""The type of a bare NULL until it gets another type; it never leaves the front end."""


class Fault(Exception):
    """An error in an expression; a caller that knows the place turns it into a SqlError."""


class Refusal(Fault):
    """A function or form that is not supported, and what would be accepted."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} is not supported; {instead}")
        self.what = what
        self.instead = instead


class NotHeld(Fault):
    """A constant that is valid in SQL and does not fit 64 bits: TRY_CAST does not turn it into NULL."""


def integer(value: int) -> Literal:
    return Literal(value, BIGINT)


def text(value: str) -> Literal:
    return Literal(value, STRING)


TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def null(of: SqlType) -> Literal:
    return Literal(None, of)


def call(op: str, args: tuple[Expr, ...], result: SqlType) -> Expr:
    """The operation applied to the arguments; a literal where all of them are constants.

    Raises ``Fault`` if computing the constant fails (overflow, division by zero, bad text). Under ``perhaps`` it stays
    a call instead, which fails for the rows that reach it.
    """
    args, made = _forms(op, args, result)
    if made is not None:
        return made
    if op in ("attempt", "failed") and not may_fail(args[0]):
        return args[0] if op == "attempt" else FALSE
    how = OPS[op]
    if how.null == "strict" and any(isinstance(a, Literal) and a.value is None for a in args):
        return null(result)
    constants = [a for a in args if isinstance(a, Literal)]
    if len(constants) == len(args) and is_computed(op, constants):
        try:
            return Literal(_constant_of(computed, op, constants, result), result)
        except Fault:
            if not _perhaps.get():
                raise
    if op in _PATTERNS and how.host is not None and all(isinstance(a, Literal) for a in args[1:]):
        # A wrong pattern is refused at CREATE, not with the first batch.
        _constant_of(how.host, "", *(a.value for a in args[1:] if isinstance(a, Literal)))
    return Call(op, args, result, nullable_call(op, args))


_perhaps: ContextVar[bool] = ContextVar("perhaps", default=False)


@contextmanager
def perhaps(possible: bool = True) -> Iterator[None]:
    """The context for binding an argument that CASE, COALESCE, AND or OR may not evaluate, if ``possible``."""
    before = _perhaps.set(possible or _perhaps.get())
    try:
        yield
    finally:
        _perhaps.reset(before)


_REGEXPS = ("regexp_extract", "regexp_replace", "regexp_count", "regexp_substr", "regexp_instr")
_PATTERNS = ("like", "ilike", "rlike", *_REGEXPS)


def _constant_of(compute: Callable[..., Any], *values: Any) -> Any:
    try:
        return compute(*values)
    except NotHeldError as error:
        raise NotHeld(str(error)) from None
    except (ValueError, ArithmeticError) as error:
        raise Fault(str(error)) from None


_MAY_BE_NULL = frozenset(
    (
        *("attempt", "ln", "log10", "log2", "log1p", "regexp_substr", "split_at", "factorial", "width_bucket", "conv"),
        *("format_number", "sha2", "parse_url", "unhex", "get_json_object", "json_array_length"),
        *("floor_of_float", "ceil_of_float", "float_to_char"),
    )
)


def nullable_call(op: str, args: tuple[Expr, ...]) -> bool:
    """True if the operation may give NULL for these arguments."""
    null = OPS[op].null
    if null in ("never", "any"):
        return null == "any"
    if op == "coalesce" or op.startswith(("greatest_", "least_")):
        return all(arg.nullable for arg in args)
    if op == "case":
        return any(value.nullable for value in (*args[1::2], args[-1]))
    if op in ("concat_ws", "format_string"):
        return args[op == "format_string"].nullable
    if op in _MAY_BE_NULL or op.startswith("try_"):
        return True
    return any(arg.nullable for arg in args)


_ANY_CODE = ("eq", "ne", "null_safe_eq", "only_value")
"""Operations on two codes of one form."""
_ONE_CODE = ("is_null", "is_not_null", "unless_failed", "unless_counted", "failed")
_AS_THEY_ARE = ("lt", "le", "gt", "ge", "check_range", "int_to_bool", "sign_int")
"""Operations whose twins over wide decimals give a word."""


def _forms(op: str, args: tuple[Expr, ...], result: SqlType) -> tuple[tuple[Expr, ...], Expr | None]:
    """The arguments of an operation, in the form that it takes of a DECIMAL: a word, or a wide one. If one is wide that
    a compiled operation cannot take, the expression that computes it in another way."""
    if not (result.wide or any(arg.type.wide for arg in args)) or op in _ONE_CODE or OPS[op].host is not None:
        return args, None
    if op in _ANY_CODE:
        return tuple(map(widened, args)), None
    if op in ("case", "coalesce", "attempt"):
        conditions = range(0, len(args) - 1, 2) if op == "case" else ()
        return tuple(arg if i in conditions else retyped(arg, result) for i, arg in enumerate(args)), None
    if op in ("and", "or", "not", "is_true", "disjoint", "in_frame"):
        return args, None
    if op not in TWINS:
        words = tuple(retyped(arg, replace(arg.type, wide=False)) for arg in args)
        return args, retyped(call(op, words, replace(result, wide=False)), result)
    if result.wide or result.is_float or op in _AS_THEY_ARE:
        return args, call(wide_twin(op), args, result)
    return args, retyped(call(wide_twin(op), args, WIDE), result)


WIDE = decimal(38, 0, True)


def widened(expr: Expr) -> Expr:
    """A number as a wide DECIMAL of the same unscaled value."""
    return expr if expr.type.wide else retyped(expr, decimal(38, expr.type.scale, True))


def retyped(expr: Expr, to: SqlType) -> Expr:
    """The same value under another type of the same unit: INT as BIGINT, FLOAT as DOUBLE, INT as DECIMAL(10, 0)."""
    if isinstance(expr, Literal):
        if expr.type.wide and not to.wide and expr.value is not None:
            _constant_of(word_of, expr.value)
        return Literal(expr.value, to)
    if expr.type.wide != to.wide and to != VOID:
        return call("wide_of" if to.wide else "word_of", (expr,), to)
    return expr if expr.type == to else replace(expr, type=to)


def key(expr: Expr) -> tuple[Any, ...]:
    """A key that is equal for expressions with the same codes; it ignores types and nullability."""
    if isinstance(expr, Column):
        return ("column", expr.name)
    if isinstance(expr, Literal):
        return ("literal", type(expr.value).__name__ + "wide" * expr.type.wide, expr.value)
    return (expr.op, *map(key, expr.args))


def nodes_of(expr: Expr) -> Iterator[Expr]:
    """The node and everything below it."""
    left = [expr]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, Call):
            left.extend(reversed(node.args))


def renamed(expr: Expr, names: Callable[[str], str]) -> Expr:
    """The expression with ``names`` applied to the name of each column; types and nullability stay."""
    if isinstance(expr, Column):
        return replace(expr, name=names(expr.name))
    if isinstance(expr, Literal):
        return expr
    return replace(expr, args=tuple(renamed(arg, names) for arg in expr.args))


def replaced(expr: Expr, by: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with its topmost nodes for which ``by`` returns a node replaced by that node, which gets the type
    of the replaced one."""
    found = by(expr)
    if found is not None:
        return retyped(found, expr.type)
    if isinstance(expr, Call):
        return replace(expr, args=tuple(replaced(arg, by) for arg in expr.args))
    return expr


def has_host(expr: Expr) -> bool:
    """True if a part of it is computed outside compiled code."""
    return any(isinstance(node, Call) and OPS[node.op].host is not None for node in nodes_of(expr))


_DIVISIONS = ("div_int", "mod_int", "pmod_int", "div_float", "mod_float", "div_decimal")
_LENGTHENING = ("concat", "concat_ws", "replace", "lpad", "rpad", "repeat")
_OVERFLOWING = ("add_int", "sub_int", "mul_int", "neg_int", "abs_int", "scale_up", "mul_decimal")


def _divides(call: Call) -> bool:
    """True if it divides by a value that cannot be 0: a constant, or ``nullif(divisor, 0)``."""
    if call.op not in _DIVISIONS:
        return False
    divisor = call.args[1]
    if isinstance(divisor, Call) and divisor.op == "case" and len(divisor.args) == 3:
        test, then, divisor = divisor.args
        zero = isinstance(test, Call) and test.op in ("eq", "eq_float") and test.args[0] == divisor
        return zero and isinstance(test.args[1], Literal) and then.nullable and isinstance(then, Literal)  # type: ignore
    return isinstance(divisor, Literal) and divisor.value not in (0, None)


def is_guarded(expr: Expr) -> bool:
    """True if it can fail for a value that an enclosing CASE may exclude.

    Overflow of + - * and texts that are too long do not count: such an expression may be computed for rows that do not
    need its result.
    """
    if not isinstance(expr, Call) or expr.op in ("attempt", "failed"):
        return False
    if any(is_guarded(arg) for arg in expr.args):
        return True
    if not fails_itself(expr) or expr.op in (*_OVERFLOWING, *_LENGTHENING, *_PATTERNS) or _divides(expr):
        return False
    if expr.op == "check_range":
        inner = expr.args[0]
        return not (isinstance(inner, Call) and inner.op in _OVERFLOWING)
    return not expr.op.startswith(("date_", "add_m", "trunc_"))


def rejects_null(condition: Expr) -> frozenset[str]:
    """Columns that cannot be NULL in a row for which the condition is TRUE."""
    if not isinstance(condition, Call):
        return _not_null_with(condition)
    op, args = condition.op, condition.args
    if op == "and":
        return rejects_null(args[0]) | rejects_null(args[1])
    if op == "or":
        return rejects_null(args[0]) & rejects_null(args[1])
    if op == "is_not_null":
        return _not_null_with(args[0])
    if op in ("is_true", "disjoint"):
        return rejects_null(args[0])
    if op == "not":
        inner = args[0]
        if isinstance(inner, Call) and inner.op == "is_null":
            return _not_null_with(inner.args[0])
        if isinstance(inner, Call) and inner.op == "not":
            return rejects_null(inner.args[0])
        return _not_null_with(inner)
    return _not_null_with(condition)


def _not_null_with(value: Expr) -> frozenset[str]:
    """Columns that are not NULL if the value is not NULL."""
    if isinstance(value, Column):
        return frozenset((value.name,))
    if isinstance(value, Call) and OPS[value.op].null == "strict":
        return frozenset().union(*map(_not_null_with, value.args))
    return frozenset()


def refined(expr: Expr, never_null: frozenset[str]) -> Expr:
    """The expression with refined nullability, given that some columns are never NULL."""
    if isinstance(expr, Column):
        return replace(expr, nullable=False) if expr.name in never_null else expr
    if isinstance(expr, Literal):
        return expr
    if not never_null:
        return expr
    args = tuple(refined(arg, never_null) for arg in expr.args)
    return replace(expr, args=args, nullable=nullable_call(expr.op, args))
