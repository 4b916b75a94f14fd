"""Evaluates expressions that only Python can compute, such as string functions, before compiled code runs.

Columns hold codes: int64 numbers that represent values. A Python function runs once per distinct list of arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.expr.ops import OPS, Op
from freshviews.kernel.machine.interruption import INTERRUPTION
from freshviews.kernel.memory.mem import allocate, load, release
from freshviews.kernel.scalar import operations as scalar
from freshviews.types import RESERVED, NotHeldError
from freshviews.types.dictionary import Dictionary
from freshviews.types.python_functions import ROWS
from freshviews.types.sqltype import NULL
from freshviews.types.values import constant_code, literal_code, literal_value, number_code, number_value, text_in

Codes = npt.NDArray[np.int64]

LARGEST_MEMO = 1 << 18
"""Most entries of the memo of an operation; a memo that reaches it is emptied."""


@dataclass(frozen=True, eq=False, slots=True)
class HostFailure:
    """The value of an operation that failed: the operation, and the reason."""

    call: Call
    reason: str


def _failure(call: Call, error: Exception) -> HostFailure:
    """The failure of an operation; its reason names the function that gives NULL instead."""
    instead = next((by for op, by in _INSTEAD.items() if call.op.startswith(op)), None)
    if instead is None or isinstance(error, NotHeldError):
        return HostFailure(call, str(error))
    return HostFailure(call, f"{error}; {instead} gives NULL instead")


_INSTEAD = {"string_to_": "TRY_CAST", "parse_timestamp": "try_to_date"}

Failures = Mapping[int, HostFailure]
"""The rows without a value, by position."""

Evaluator = Callable[[Mapping[str, Codes]], tuple[Codes, Failures]]

NO_FAILURES: Failures = MappingProxyType({})


def evaluator_for(expr: Expr, dictionary: Dictionary) -> Evaluator:
    """The function that evaluates one expression over batches of columns of codes, by name.

    It returns a code for every row, NULL where an operation fails, and the failures by row. An expression without
    columns is evaluated once per row of the given columns.

    A host operation is a Python function over values; it runs once per distinct list of arguments. A memo per operation
    maps the codes of arguments to the code of the result. As in Spark, ``case``, ``coalesce``, ``and`` and ``or``
    evaluate an argument only for the rows that need it. A failure is returned as a value; it becomes an error only if
    compiled code uses that value.

    Host operations over many values can take most of the time of a commit. They end before the commit changes anything,
    so Ctrl-C can interrupt them (``kernel.machine.interruption``).
    """
    node = _node(expr, dictionary)
    names = columns_of(expr)

    def run(columns: Mapping[str, Codes]) -> tuple[Codes, Failures]:
        count = len(next(iter(columns.values()))) if columns else 0
        lists = {name: columns[name].tolist() for name in names}
        found, failures = node(lists, range(count)), NO_FAILURES
        try:
            codes = np.array(found, np.int64)
        except TypeError:  # a failure is not a number
            failures = {row: code for row, code in enumerate(found) if isinstance(code, HostFailure)}
            codes = np.array([code if isinstance(code, int) else NULL for code in found], np.int64)
        if dictionary.mark is not None and expr.type.is_text:
            dictionary.mark(codes)
        return codes, failures

    return run


_Code = int | HostFailure

# Maps columns and row positions to the codes of these rows, in their order.
_Node = Callable[[Mapping[str, list[int]], Sequence[int]], "list[_Code]"]


def _node(expr: Expr, dictionary: Dictionary) -> _Node:
    if isinstance(expr, Column):
        return _column(expr.name)
    if isinstance(expr, Literal):
        code = constant_code(expr.type, expr.value, dictionary)
        return lambda columns, rows: [code] * len(rows)
    args = [_node(arg, dictionary) for arg in expr.args]
    if expr.op == "case":
        return _case(args[:-1:2], args[1::2], args[-1])
    if expr.op == "coalesce":
        return _first(args, lambda code: code != NULL)
    if expr.op in ("and", "or"):
        return _connective(args[0], args[1], 0 if expr.op == "and" else 1)
    if expr.op in ("attempt", "failed"):
        return _attempt(args[0], expr.op == "failed")
    op = OPS[expr.op]
    if op.host is not None and op.null == "strict":
        varying = [place for place, arg in enumerate(expr.args) if not isinstance(arg, Literal) or arg.value is None]
        if len(varying) == 1:
            return _of_one(expr, varying[0], args[varying[0]], op.host, dictionary)
    apply = _host(expr, op, dictionary) if op.host else _compiled(expr, op)
    return _strict(args, apply, dictionary, _many(expr, op, dictionary))


def _column(name: str) -> _Node:
    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[_Code]:
        column = columns[name]
        return list(column) if len(rows) == len(column) else [column[row] for row in rows]

    return codes


def _case(conditions: list[_Node], values: list[_Node], otherwise: _Node) -> _Node:
    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[_Code]:
        found: dict[int, _Code] = {}
        rest = rows
        for condition, value in zip(conditions, values, strict=True):
            truth = dict(zip(rest, condition(columns, rest), strict=True))
            taken = [row for row, code in truth.items() if code == 1]
            found.update(zip(taken, value(columns, taken), strict=True))
            found.update((row, code) for row, code in truth.items() if isinstance(code, HostFailure))
            rest = [row for row in rest if row not in found]
        found.update(zip(rest, otherwise(columns, rest), strict=True))
        return [found[row] for row in rows]

    return codes


def _first(args: list[_Node], decides: Callable[[_Code], bool]) -> _Node:
    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[_Code]:
        found: dict[int, _Code] = {}
        rest = rows
        for arg in args:
            found.update(zip(rest, arg(columns, rest), strict=True))
            rest = [row for row in rest if not decides(found[row])]
        return [found[row] for row in rows]

    return codes


def _connective(left: _Node, right: _Node, decisive: int) -> _Node:
    """AND if 0 is decisive, OR if 1 is."""

    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[_Code]:
        found = left(columns, rows)
        open_places = [
            place for place, code in enumerate(found) if code != decisive and not isinstance(code, HostFailure)
        ]
        others = right(columns, [rows[place] for place in open_places])
        for place, code in zip(open_places, others, strict=True):
            if code in (decisive, NULL) or isinstance(code, HostFailure):
                found[place] = code
        return found

    return codes


def _attempt(arg: _Node, failed: bool) -> _Node:
    """NULL in the place of a failure; with ``failed``, TRUE if there is a failure."""

    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[_Code]:
        found = arg(columns, rows)
        if failed:
            return [int(isinstance(code, HostFailure)) for code in found]
        return [NULL if isinstance(code, HostFailure) else code for code in found]

    return codes


_Key = tuple[_Code, ...]
_Many = Callable[[list[_Key]], "dict[_Key, _Code]"]


def _strict(args: list[_Node], apply: Callable[..., _Code], dictionary: Dictionary, many: _Many | None) -> _Node:
    """An operation that evaluates all its arguments, with a memo. ``many`` computes several keys at once, or none."""
    memo: dict[_Key, _Code] = {}
    freed = 0

    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[_Code]:
        nonlocal freed
        keys = list(zip(*(arg(columns, rows) for arg in args), strict=True)) if args else [()] * len(rows)
        if len(memo) > LARGEST_MEMO or freed != dictionary.freed:
            memo.clear()
            freed = dictionary.freed
        if many is not None:
            memo.update(many([key for key in dict.fromkeys(keys) if key not in memo]))
        for key in keys:
            if key not in memo:
                if INTERRUPTION.asked:
                    INTERRUPTION.raise_if_allowed()
                memo[key] = next((code for code in key if isinstance(code, HostFailure)), None) or apply(*key)
        return [memo[key] for key in keys]

    return codes


def _of_one(
    call: Call, place: int, arg: _Node, function: Callable[..., object], dictionary: Dictionary
) -> _Node:
    """A host operation with one argument that is not a constant, the usual case; its memo is keyed by that code."""
    constants = [
        literal_value(one.type, literal_code(one.type, one.value, dictionary), dictionary)
        for one in call.args
        if isinstance(one, Literal)
    ]
    before, after = constants[:place], constants[place:]
    kind, result = call.args[place].type, call.type
    memo: dict[_Code, _Code] = {}
    freed = 0

    def value_of(code: int) -> str | int | float | bool | None:
        return literal_value(kind, code, dictionary)

    def code_of(value: Any) -> int:
        return literal_code(result, value, dictionary)

    decode: Callable[[int], Any] = dictionary.decode if kind.name == "STRING" else value_of
    encode: Callable[[Any], int] = int if result.name == "BOOLEAN" else code_of

    def computed(code: _Code) -> _Code:
        if isinstance(code, HostFailure):
            return code
        try:
            return encode(function(*before, decode(code), *after))
        except (ValueError, OverflowError) as error:
            return _failure(call, error)

    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[_Code]:
        nonlocal freed
        keys = arg(columns, rows)
        if not memo or len(memo) > LARGEST_MEMO or freed != dictionary.freed:
            memo.clear()
            freed = dictionary.freed
            memo[NULL] = NULL
        for key in keys:
            if key not in memo:
                if INTERRUPTION.asked:
                    INTERRUPTION.raise_if_allowed()
                memo[key] = computed(key)
        return [memo[key] for key in keys]

    return codes


def _host(call: Call, op: Op, dictionary: Dictionary) -> Callable[..., _Code]:
    function = op.host
    assert function is not None
    kinds = [arg.type for arg in call.args]
    strict = op.null == "strict"

    def apply(*codes: int) -> _Code:
        if strict and NULL in codes:
            return NULL
        values = [literal_value(kind, code, dictionary) for kind, code in zip(kinds, codes, strict=True)]
        try:
            return literal_code(call.type, function(*values), dictionary)
        except (ValueError, OverflowError) as error:
            return _failure(call, error)

    return apply


def _many(call: Call, op: Op, dictionary: Dictionary) -> _Many | None:
    """Computes an operation for many keys at once, where it can; None for an operation without ``many``."""
    function, kinds = op.many, [arg.type for arg in call.args]
    if function is None:
        return None

    def values_of(codes: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(literal_value(kind, code, dictionary) for kind, code in zip(kinds, codes, strict=True))

    def computed(keys: list[_Key]) -> dict[_Key, _Code]:
        found: dict[_Key, _Code] = {}
        plain = [tuple(code for code in key if isinstance(code, int)) for key in keys]
        known = [key for key in plain if len(key) == len(kinds)]
        for start in range(0, len(known), ROWS):
            if INTERRUPTION.asked:
                INTERRUPTION.raise_if_allowed()
            part = known[start : start + ROWS]
            values = function([values_of(key) for key in part])
            if values is not None:
                codes = [literal_code(call.type, value, dictionary) for value in values]
                found.update(zip(part, codes, strict=True))
        return found

    return computed


def constant(call: Call) -> int | float | bool | None:
    """The value of a compiled operation over literals. Raises ValueError if it fails."""
    texts: dict[str, int] = {}

    def code_of(arg: Literal) -> int:
        text = text_in(arg.type, arg.value)
        return number_code(arg.type, arg.value) if text is None else texts.setdefault(text, len(texts))  # type: ignore

    codes = [code_of(arg) for arg in call.args if isinstance(arg, Literal)]
    code = _compiled(call, OPS[call.op])(*codes)
    if not isinstance(code, HostFailure):
        return number_value(call.type, code)
    if call.op == "check_range" and call.args[1] != call.args[2]:
        value, low, high = (arg.value for arg in call.args if isinstance(arg, Literal))
        raise ValueError(f"{value} is outside {low} to {high}")
    raise NotHeldError(RESERVED) if code.reason == scalar.ERRORS[scalar.LEAST] else ValueError(code.reason)


def _compiled(call: Call, op: Op) -> Callable[..., _Code]:
    assert op.kernel is not None
    kernel = getattr(scalar, op.kernel)
    if not op.fallible:
        return lambda *codes: int(kernel(*codes))

    def apply(*codes: int) -> _Code:
        status = allocate(1)
        try:
            code = int(kernel(*codes, status))
            error = load(status, 0)
        finally:
            release(status)
        return HostFailure(call, scalar.ERRORS[error]) if error else code

    return apply
