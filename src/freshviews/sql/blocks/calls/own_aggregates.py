"""Binds the calls of users' aggregates of plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from freshviews.catalog.known_functions import function_named
from freshviews.expr.nodes import Expr, Literal
from freshviews.query.block import Fold, GatheredColumn
from freshviews.sql.blocks.bound import AggregateCall
from freshviews.sql.expressions.build import Refusal
from freshviews.sql.expressions.calls import arguments_of, values_of
from freshviews.sql.expressions.expression import bind_body
from freshviews.sql.text.parse import Node
from freshviews.types import INT
from freshviews.types.python_aggregates import aggregate_of


def call_of_aggregate(
    name: str,
    nodes: Sequence[Node],
    distinct: bool,
    bind: Callable[[Node], Expr],
    keep: Callable[[Expr], Expr],
) -> AggregateCall:
    """The call of an aggregate, with a ``Fold``. ``keep``: applies FILTER to an argument. Raises Fault.

    Where NULL is a value, or there is no argument, a column before the arguments is NULL in the rows that FILTER drops.
    """
    function = function_named(name)
    assert function is not None and function.returns is not None
    if any(isinstance(one, exp.Order) for one in nodes):
        raise Refusal(
            f"ORDER BY in {function.name}",
            "values come in ascending order of the arguments; make the value to sort by the first argument",
        )
    known = aggregate_of(function.operation)
    given = [None if node is None else bind(node) for node in arguments_of(function, nodes)]
    values = [*values_of(function, given, bind_body).values()]
    marked = known.nulls or not values
    args = tuple(keep(one) for one in ([Literal(1, INT)] if marked else []) + values)
    fold = Fold(
        tuple(GatheredColumn(one.type) for one in args),
        distinct=distinct,
        operation=function.operation,
        returns=function.returns,
        marked=marked,
        removes=known.removes and not distinct,
    )
    return AggregateCall(function.name, args, False, function.returns, gathering=fold)
