"""Evaluates expressions with host operations over whole columns of codes, before compiled code runs.

A host operation is a Python function over values; it runs once per distinct arguments. Each operation of an expression
has a memo from the codes of its arguments to that of its result, until codes of the dictionary are freed. As in Spark,
arguments of ``case``, ``coalesce``, ``and`` and ``or`` are evaluated only for the rows that need them, and an operation
only for the rows that reach it.

Host operations over many values are what takes long in a commit, and nothing has changed while they run: so they can be
interrupted, see ``Interruption``.

Compiled operations are called from ``freshviews.kernel.scalar.operations``, which imports only types: the one import of
this package from the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.expr.ops import OPS, Op
from freshviews.kernel.memory.mem import allocate, load, release
from freshviews.kernel.scalar import operations as scalar
from freshviews.types.dictionary import Dictionary
from freshviews.types.sqltype import NULL
from freshviews.types.values import constant_code, literal_code, literal_value

Codes = npt.NDArray[np.int64]
Evaluator = Callable[[Mapping[str, Codes]], Codes]

LARGEST_MEMO = 1 << 18
"""Most entries of the memo of an operation; then it is emptied."""


class Interruption:
    """Whether Ctrl-C was pressed, and whether evaluation may end by KeyboardInterrupt.

    ``asked``: the thread that received SIGINT; ``allowed``: the thread whose evaluation may end; 0 for none.
    """

    __slots__ = ("allowed", "asked")

    def __init__(self) -> None:
        self.asked = self.allowed = 0

    def raise_if_allowed(self) -> None:
        """Raise KeyboardInterrupt, once, where it was asked for in this thread and is allowed."""
        if self.asked == self.allowed == get_ident():
            self.asked = self.allowed = 0
            raise KeyboardInterrupt


INTERRUPTION = Interruption()


class HostFailure(ValueError):
    """An operation failed for a row: ``row`` (position in the columns), ``call`` and ``reason``."""

    def __init__(self, row: int, call: Call, reason: str) -> None:
        super().__init__(f"row {row}: {call}: {reason}")
        self.row = row
        self.call = call
        self.reason = reason


class _Failed(Exception):
    """The reason of a failure, before the row is known."""


def evaluate(expr: Expr, columns: Mapping[str, Codes], dictionary: Dictionary) -> Codes:
    """Codes of an expression for every row; ``evaluator_for`` also keeps memos between calls."""
    return evaluator_for(expr, dictionary)(columns)


def evaluator_for(expr: Expr, dictionary: Dictionary) -> Evaluator:
    """The function that evaluates one expression over batches of columns of codes, by name.

    Raises ``HostFailure`` for a row for which an operation fails; then only the dictionary may have changed, by strings
    that no row uses. An expression without columns gives one row per row of the given columns.
    """
    node = _node(expr, dictionary)
    names = columns_of(expr)

    def run(columns: Mapping[str, Codes]) -> Codes:
        count = len(next(iter(columns.values()))) if columns else 0
        lists = {name: columns[name].tolist() for name in names}
        codes = np.array(node(lists, range(count)), np.int64)
        if dictionary.mark is not None and expr.type.name == "STRING":
            dictionary.mark(codes)
        return codes

    return run


# Returns the codes of the given rows, in their order.
_Node = Callable[[Mapping[str, list[int]], Sequence[int]], list[int]]


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
    op = OPS[expr.op]
    if op.host is not None and op.null == "strict":
        varying = [place for place, arg in enumerate(expr.args) if not isinstance(arg, Literal) or arg.value is None]
        if len(varying) == 1:
            return _of_one(expr, varying[0], args[varying[0]], op.host, dictionary)
    return _strict(expr, args, _host(expr, op, dictionary) if op.host else _compiled(op), dictionary)


def _column(name: str) -> _Node:
    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[int]:
        column = columns[name]
        return column if len(rows) == len(column) else [column[row] for row in rows]

    return codes


def _case(conditions: list[_Node], values: list[_Node], otherwise: _Node) -> _Node:
    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[int]:
        found: dict[int, int] = {}
        rest = rows
        for condition, value in zip(conditions, values, strict=True):
            truth = condition(columns, rest)
            taken = [row for row, code in zip(rest, truth, strict=True) if code == 1]
            found.update(zip(taken, value(columns, taken), strict=True))
            rest = [row for row, code in zip(rest, truth, strict=True) if code != 1]
        found.update(zip(rest, otherwise(columns, rest), strict=True))
        return [found[row] for row in rows]

    return codes


def _first(args: list[_Node], decides: Callable[[int], bool]) -> _Node:
    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[int]:
        found: dict[int, int] = {}
        rest = rows
        for arg in args:
            found.update(zip(rest, arg(columns, rest), strict=True))
            rest = [row for row in rest if not decides(found[row])]
        return [found[row] for row in rows]

    return codes


def _connective(left: _Node, right: _Node, decisive: int) -> _Node:
    """AND if 0 is decisive, OR if 1 is."""

    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[int]:
        found = left(columns, rows)
        open_places = [place for place, code in enumerate(found) if code != decisive]
        others = right(columns, [rows[place] for place in open_places])
        result = list(found)
        for place, code in zip(open_places, others, strict=True):
            if code in (decisive, NULL):
                result[place] = code
        return result

    return codes


def _strict(call: Call, args: list[_Node], apply: Callable[..., int], dictionary: Dictionary) -> _Node:
    """An operation that evaluates all its arguments, with its memo."""
    memo: dict[tuple[int, ...], int] = {}
    freed = 0

    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[int]:
        nonlocal freed
        keys = list(zip(*(arg(columns, rows) for arg in args), strict=True))
        if len(memo) > LARGEST_MEMO or freed != dictionary.freed:
            memo.clear()
            freed = dictionary.freed
        for place, key in enumerate(keys):
            if key not in memo:
                if INTERRUPTION.asked:
                    INTERRUPTION.raise_if_allowed()
                try:
                    memo[key] = apply(*key)
                except _Failed as error:
                    raise HostFailure(rows[place], call, str(error)) from None
        return [memo[key] for key in keys]

    return codes


def _of_one(
    call: Call, place: int, arg: _Node, function: Callable[..., object], dictionary: Dictionary
) -> _Node:
    """A host operation whose arguments are constants but for one, the usual case; its memo is by that one's code."""
    constants = [
        literal_value(one.type, literal_code(one.type, one.value, dictionary), dictionary)
        for one in call.args
        if isinstance(one, Literal)
    ]
    before, after = constants[:place], constants[place:]
    kind, result = call.args[place].type, call.type
    memo: dict[int, int] = {}
    freed = 0

    def value_of(code: int) -> str | int | float | bool | None:
        return literal_value(kind, code, dictionary)

    def code_of(value: Any) -> int:
        return literal_code(result, value, dictionary)

    decode: Callable[[int], Any] = dictionary.decode if kind.name == "STRING" else value_of
    encode: Callable[[Any], int] = int if result.name == "BOOLEAN" else code_of

    def codes(columns: Mapping[str, list[int]], rows: Sequence[int]) -> list[int]:
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
                try:
                    memo[key] = encode(function(*before, decode(key), *after))
                except (ValueError, OverflowError) as error:
                    raise HostFailure(rows[keys.index(key)], call, str(error)) from None
        return [memo[key] for key in keys]

    return codes


def _host(call: Call, op: Op, dictionary: Dictionary) -> Callable[..., int]:
    function = op.host
    assert function is not None
    kinds = [arg.type for arg in call.args]
    strict = op.null == "strict"

    def apply(*codes: int) -> int:
        if strict and NULL in codes:
            return NULL
        values = [literal_value(kind, code, dictionary) for kind, code in zip(kinds, codes, strict=True)]
        try:
            return literal_code(call.type, function(*values), dictionary)
        except (ValueError, OverflowError) as error:
            raise _Failed(error) from None

    return apply


def _compiled(op: Op) -> Callable[..., int]:
    assert op.kernel is not None
    kernel = getattr(scalar, op.kernel)
    if not op.fallible:
        return lambda *codes: int(kernel(*codes))

    def apply(*codes: int) -> int:
        status = allocate(1)
        try:
            code = int(kernel(*codes, status))
            error = load(status, 0)
        finally:
            release(status)
        if error:
            raise _Failed(scalar.ERRORS[error])
        return code

    return apply
