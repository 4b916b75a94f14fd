"""Replaces calls of users' SQL functions by the bodies of the functions. Registers Python functions in DuckDB."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import pyarrow as pa
from sqlglot import exp

from freshviews.asking.typing import as_node
from freshviews.catalog.functions import FunctionDef
from freshviews.sql.expressions.build import Fault
from freshviews.sql.expressions.calls import MOST_OPERATIONS, arguments_of, expression_of, too_large
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import BINARY, TIMESTAMP_LTZ, SqlType
from freshviews.types.python_functions import PythonFunction, function_of, imported

_PREFIX = "fv_python_"


def write_out(text: SqlText, tree: Node, functions: Iterable[FunctionDef]) -> dict[str, str]:
    """Write out all calls of the functions in a tree. Returns the operations of Python functions by the names under
    which DuckDB calls them. Raises SqlError at a call with wrong arguments."""
    known = {one.name.lower(): one for one in functions}
    operations: dict[str, str] = {}
    count = 0
    while calls := [node for node in tree.find_all(exp.Anonymous) if node.name.lower() in known]:
        for call in reversed(calls):
            function = known[call.name.lower()]
            if function.aggregate:
                what = f"aggregate {function.name}, of plain Python, in a SELECT"
                raise text.unsupported(call, what, "call it in a view, and select from the view")
            _check_place(text, call)
            count += 1 + sum(1 for _ in call.walk())
            if count > 4 * MOST_OPERATIONS:
                raise text.error(call, too_large(function.name))
            try:
                made = _made(function, call)
            except Fault as fault:
                raise text.error(call, str(fault)) from None
            if function.operation:
                operations[_python_name(function)] = function.operation
            made.meta.update(call.meta)
            call.replace(made)
    return operations


_CLAUSES = ((exp.Filter, "FILTER (WHERE ...)"), (exp.Window, "OVER"), (exp.IgnoreNulls, "IGNORE NULLS"))
_ARGUMENTS = ((exp.Distinct, "DISTINCT"), (exp.Order, "ORDER BY"))


def _check_place(text: SqlText, call: exp.Anonymous) -> None:
    """Refuse what stands in calls of aggregates, or after them."""
    around = call.parent if call.arg_key == "this" else None
    found = [what for kind, what in _CLAUSES if isinstance(around, kind)]
    found += [what for kind, what in _ARGUMENTS if any(isinstance(one, kind) for one in call.expressions)]
    if found:
        raise text.error(call, f"{call.name} is not an aggregate function; leave {found[0]} out")


def _made(function: FunctionDef, call: exp.Anonymous) -> Node:
    given: dict[str, Node] = {}
    for parameter, node in zip(function.parameters, arguments_of(function, call.expressions), strict=True):
        value = _placeless(expression_of(parameter.default)[1]) if node is None else node.copy()
        given[parameter.name.lower()] = _cast(value, parameter.type)
    if function.operation:
        assert function.returns is not None
        values = [*given.values()] or [exp.true()]
        return _cast(exp.Anonymous(this=_python_name(function), expressions=values), function.returns)
    body = exp.Paren(this=_placeless(expression_of(function.body)[1]))
    for column in list(body.find_all(exp.Column)):
        column.replace(given[column.name.lower()].copy())
    return body if function.returns is None else _cast(body, function.returns)


def call_of(
    name: str,
    reference: str,
    takes: Sequence[SqlType],
    arguments: Sequence[Node],
    returns: SqlType,
    operations: dict[str, str],
) -> Node:
    """A call of the Python function ``module:function``, whose operation is added to ``operations``; NULL where an
    argument is."""
    operation = PythonFunction(name, tuple(takes), returns, imported(reference), reference=reference).operation
    operations[_name_of(operation)] = operation
    values = [_cast(one.copy(), kind) for one, kind in zip(arguments, takes, strict=True)]
    return _cast(exp.Anonymous(this=_name_of(operation), expressions=values), returns)


def _python_name(function: FunctionDef) -> str:
    return _name_of(function.operation)


def _name_of(operation: str) -> str:
    return f"{_PREFIX}{hashlib.sha256(operation.encode()).hexdigest()[:16]}"


def _cast(value: Node, to: SqlType) -> Node:
    if to == BINARY:
        raise Fault("BINARY is not supported in a SELECT; call the function in a view")
    return exp.Cast(this=exp.Paren(this=value), to=as_node(to))


def _placeless(tree: Node) -> Node:
    """A copy of an expression of another text, whose places are none in the text of the SELECT."""
    made = tree.copy()
    for node in made.walk():
        for name in (SPAN, "start", "end", "line", "col"):
            node.meta.pop(name, None)
    return made


def is_python(name: str) -> bool:
    """True for the name under which DuckDB calls a Python function."""
    return name.startswith(_PREFIX)


def make_known(connection: Any, functions: Iterable[tuple[str, str]]) -> None:
    """Let DuckDB call Python functions, by name their operations. All connections have the functions of
    ``connection``, while it is open."""
    with _LOCK:
        for name, operation in functions:
            function = function_of(operation)
            if name in _called(os.getpid()) or function is None:
                continue
            takes = [_duckdb_type(one) for one in function.takes] or ["BOOLEAN"]
            how, returns = _with_arguments(function), _duckdb_type(function.returns)
            connection.create_function(name, how, takes, returns, null_handling="special", type="arrow")
            _called(os.getpid())[name] = how


def _with_arguments(function: PythonFunction) -> Callable[..., pa.Array]:
    """The function of Arrow columns with as many arguments as DuckDB passes, which counts them."""

    def called(*columns: pa.ChunkedArray) -> pa.Array:
        return function.array(len(columns[0]), columns[: len(function.takes)])

    names = (f"arg{place}" for place in range(len(function.takes) or 1))
    arguments = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in names]
    vars(called)["__signature__"] = inspect.Signature(arguments)
    return called


_LOCK = Lock()


@lru_cache(1)
def _called(process: int) -> dict[str, Callable[..., pa.Array]]:
    """The functions that the DuckDB of a process calls, by name. They must live as long."""
    return {}


def _duckdb_type(kind: SqlType) -> str:
    if kind == TIMESTAMP_LTZ:
        return "TIMESTAMP"
    return {"INT": "INTEGER", "STRING": "VARCHAR"}.get(kind.name, str(kind).replace(", ", ","))
