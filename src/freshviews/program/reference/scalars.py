"""Evaluates scalar expressions over codes, one row at a time: the executable specification of ``freshviews.expr``."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.ops import OPS
from freshviews.kernel.memory import mem
from freshviews.kernel.scalar import operations as scalar
from freshviews.types import NULL, SqlType
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import text_of, value_of_text

NAN = 0x7FF8000000000000


class ScalarError(ArithmeticError):
    """An operation failed (overflow, division by zero, bad text); the message is its reason."""


def evaluate(expr: Expr, row: Mapping[str, int], dictionary: Dictionary | None = None) -> int:
    """The code of an expression for a row, which maps names of columns to codes.

    ``dictionary`` is needed for string literals and host operations on strings. Arguments of ``case``, ``coalesce``,
    ``and`` and ``or`` are evaluated only when needed. Raises ScalarError.
    """
    match expr:
        case Column(name=name):
            return row[name]
        case Literal(value=value, type=kind):
            return encode(value, kind, dictionary)
        case Call(op="case", args=args):
            for condition, result in zip(args[:-1:2], args[1::2], strict=False):
                if evaluate(condition, row, dictionary) == 1:
                    return evaluate(result, row, dictionary)
            return evaluate(args[-1], row, dictionary)
        case Call(op="coalesce", args=args):
            found = (evaluate(arg, row, dictionary) for arg in args)
            return next((code for code in found if code != NULL), NULL)
        case Call(op="and" | "or", args=(left, right)):
            decisive = 0 if expr.op == "and" else 1
            codes = [evaluate(left, row, dictionary)]
            if codes[0] != decisive:
                codes.append(evaluate(right, row, dictionary))
            if decisive in codes:
                return decisive
            return NULL if NULL in codes else 1 - decisive
        case Call(op="attempt" | "failed", args=(arg,)):
            try:
                code = evaluate(arg, row, dictionary)
            except ScalarError:
                return NULL if expr.op == "attempt" else 1
            return code if expr.op == "attempt" else 0
        case Call(op=op, args=args, type=kind):
            codes = [evaluate(arg, row, dictionary) for arg in args]
            if OPS[op].host is None:
                return _compiled(op, codes)
            return _host(op, codes, args, kind, dictionary)
    raise AssertionError(f"not an expression: {expr!r}")


def encode(value: Any, kind: SqlType, dictionary: Dictionary | None = None) -> int:
    """The code of a value in the form of literals; see ``freshviews.types.sqltype``."""
    if value is None:
        return NULL
    text = text_of(value) if kind.wide else value
    if isinstance(text, str):
        assert dictionary is not None, "strings need a dictionary"
        return dictionary.encode(text)
    if kind.is_float:
        if math.isnan(value):
            return NAN
        bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
        return bits
    return int(value)


def decode(code: int, kind: SqlType, dictionary: Dictionary | None = None) -> Any:
    """The value of a code, in the form of literals."""
    if code == NULL:
        return None
    if kind.is_text:
        assert dictionary is not None, "strings need a dictionary"
        text = dictionary.decode(code)
        return value_of_text(text) if kind.wide else text
    if kind.is_float:
        return struct.unpack("<d", struct.pack("<q", code))[0]
    return bool(code) if kind.name == "BOOLEAN" else code


def rank(code: int, kind: SqlType, dictionary: Dictionary | None = None) -> tuple[int, Any]:
    """A sort key of a code other than NULL: strings are ordered by bytes, NaN is the greatest double."""
    value = decode(code, kind, dictionary)
    if isinstance(value, str):
        return (0, value.encode())
    return (1, 0.0) if value != value else (0, value)


def _compiled(op: str, codes: list[int]) -> int:
    entry = OPS[op]
    assert entry.kernel is not None
    function = getattr(scalar, entry.kernel)
    if not entry.fallible:
        return int(function(*codes))
    status = mem.allocate(1)
    mem.store(status, 0, 0)
    try:
        result = int(function(*codes, status))
        error = mem.load(status, 0)
    finally:
        mem.release(status)
    if error:
        raise ScalarError(scalar.ERRORS[error])
    return result


def _host(op: str, codes: list[int], args: tuple[Expr, ...], kind: SqlType, dictionary: Dictionary | None) -> int:
    entry = OPS[op]
    assert entry.host is not None
    values = [decode(code, arg.type, dictionary) for code, arg in zip(codes, args, strict=True)]
    if entry.null == "strict" and None in values:
        return NULL
    try:
        return encode(entry.host(*values), kind, dictionary)
    except ValueError as error:
        raise ScalarError(str(error)) from None
