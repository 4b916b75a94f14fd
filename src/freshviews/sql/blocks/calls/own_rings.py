"""Binds the aggregates of users' rings. A call returns one value, or several columns of a SELECT list.

A user's ring defines in Python what a row adds to its group, and how a group's result is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshviews.catalog.rings import RingAggregate
from freshviews.expr.nodes import Expr
from freshviews.sql.blocks.bound import AggregateCall
from freshviews.sql.expressions.build import VOID, Fault, null
from freshviews.sql.expressions.cast import cast
from freshviews.types import SqlType


def columns_of_ring(
    ring: RingAggregate, given: Sequence[Expr], reference: Callable[[AggregateCall], Expr]
) -> list[tuple[str, Expr]]:
    """The columns of a call, by name. Raises Fault for wrong arguments."""
    args = _arguments(ring, given)
    return [(name, reference(_call(ring, args, i))) for i, (name, _) in enumerate(ring.results)]


def call_of_ring(ring: RingAggregate, given: Sequence[Expr]) -> AggregateCall:
    """The call of a ring whose result is one value. Raises Fault for wrong arguments."""
    return _call(ring, _arguments(ring, given), 0)


def _call(ring: RingAggregate, args: tuple[Expr, ...], entry: int) -> AggregateCall:
    return AggregateCall(ring.function(entry), args, False, ring.results[entry][1], (entry,), ring.family)


def _arguments(ring: RingAggregate, given: Sequence[Expr]) -> tuple[Expr, ...]:
    if len(given) != len(ring.arguments):
        types = ", ".join(map(str, ring.arguments))
        count = len(ring.arguments)
        raise Fault(f"{ring.name} takes {count} argument{'s' * (count > 1)} ({types}), not {len(given)}")
    return tuple(_argument(ring, i, arg, of) for i, (arg, of) in enumerate(zip(given, ring.arguments, strict=True), 1))


def _argument(ring: RingAggregate, number: int, arg: Expr, of: SqlType) -> Expr:
    if arg.type == VOID:
        return null(of)
    exact = arg.type.is_integer or (of.is_decimal and arg.type.is_decimal)
    if not (exact or (of.is_float and arg.type.is_numeric)):
        raise Fault(f"argument {number} of {ring.name} must be {of}, not {arg.type}; write CAST(... AS {of})")
    return cast(arg, of)
