"""Binds calls of users' functions.

The body of an SQL function replaces its call. A call of a Python function becomes an operation. As in Spark, arguments
are cast to the types of the parameters, and the result is cast to the type of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from sqlglot import exp

from freshviews.catalog.catalog import near
from freshviews.catalog.functions import FunctionDef
from freshviews.errors import SqlError
from freshviews.expr.nodes import Call, Expr
from freshviews.sql.expressions.build import Fault, call
from freshviews.sql.expressions.cast import cast
from freshviews.sql.text.parse import Node, SqlText, parse
from freshviews.types import STRING

MOST_OPERATIONS = 10_000
"""Most operations of a call, with the bodies of all functions in it."""

BindBody = Callable[[FunctionDef, SqlText, Node, dict[str, Expr]], Expr]
"""Binds an expression of a function over the values of its parameters, by lower-case name."""


def too_large(function: str) -> str:
    """The message for a call of too many operations."""
    return f"a call of {function} has over {MOST_OPERATIONS:,} operations, with the bodies of all functions in it"


def arguments_of(function: FunctionDef, nodes: Sequence[Node]) -> Iterator[Node | None]:
    """The node of each parameter, given by position or as ``name => value``; None for the DEFAULT. Raises Fault."""
    given: dict[str, Node] = {}
    names = [one.name.lower() for one in function.parameters]
    for place, node in enumerate(nodes):
        if isinstance(node, exp.Kwarg):
            name, value = node.name.lower(), node.expression
            if name not in names:
                raise Fault(f"{function.name} has no parameter {node.name}{near(node.name, names)}")
        elif given and place and isinstance(nodes[place - 1], exp.Kwarg):
            raise Fault(
                f"{function.name}: an argument without a name is after a named argument; name this argument too"
            )
        else:
            if place >= len(names):
                raise Fault(_counted(function, len(nodes)))
            name, value = names[place], node
        if name in given:
            raise Fault(f"{function.name}: parameter {name} is given twice")
        given[name] = value
    for parameter, name in zip(function.parameters, names, strict=True):
        if name not in given and not parameter.default:
            raise Fault(_counted(function, len(nodes)))
        yield given.get(name)


def _counted(function: FunctionDef, count: int) -> str:
    most = len(function.parameters)
    least = sum(not one.default for one in function.parameters)
    accepted = str(most) if least == most else f"{least} to {most}"
    listed = ", ".join(f"{one.name} {one.type}" for one in function.parameters)
    return f"{function.name}({listed}) takes {accepted} argument{'s' * (accepted != '1')}, not {count}"


def value_of(function: FunctionDef, given: Sequence[Expr | None], bind: BindBody) -> Expr:
    """The value of a call; ``given``: a value for each parameter, None for the DEFAULT. Raises Fault."""
    values = values_of(function, given, bind)
    if function.operation:
        assert function.returns is not None
        made = call(function.operation, tuple(values.values()), function.returns)
    else:
        text, node = expression_of(function.body)
        made = _bound(function, text, node, values, bind)
        made = made if function.returns is None else cast(made, function.returns)
    if _size(made, {}) > MOST_OPERATIONS:
        raise Fault(too_large(function.name))
    return made


def values_of(function: FunctionDef, given: Sequence[Expr | None], bind: BindBody) -> dict[str, Expr]:
    """The values of the parameters, by lower-case name, cast to their types; ``given`` as in ``value_of``.

    Raises Fault."""
    values: dict[str, Expr] = {}
    for parameter, value in zip(function.parameters, given, strict=True):
        if value is None:
            text, node = expression_of(parameter.default)
            value = _bound(function, text, node, {}, bind)
        try:
            if value.type.is_interval and not (parameter.type.is_interval or parameter.type == STRING):
                raise Fault(f"CAST the {value.type}")
            values[parameter.name.lower()] = cast(value, parameter.type)
        except Fault as fault:
            raise Fault(f"parameter {parameter.name} of {function.name} is {parameter.type}: {fault}") from None
    return values


def _bound(function: FunctionDef, text: SqlText, node: Node, values: dict[str, Expr], bind: BindBody) -> Expr:
    try:
        return bind(function, text, node, values)
    except SqlError as error:
        message = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
        raise Fault(f"{function.name}: {message}") from None


@lru_cache(1024)
def expression_of(sql: str) -> tuple[SqlText, Node]:
    """An expression of SQL, as a tree whose places are those in the text."""
    text = SqlText(f"SELECT {sql}")
    (tree,) = parse(text)
    return text, tree.expressions[0]


def _size(expr: Expr, sizes: dict[int, int]) -> int:
    """The number of operations of an expression, each as often as it is written out."""
    if not isinstance(expr, Call):
        return 0
    known = sizes.get(id(expr))
    if known is None:
        known = sizes[id(expr)] = 1 + sum(_size(arg, sizes) for arg in expr.args)
    return known
