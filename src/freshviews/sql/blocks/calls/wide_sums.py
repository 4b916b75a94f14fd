"""Computes SUM and AVG of wide decimals (up to 38 digits): splits each value into parts of 32 bits, and sums the parts.

The sum of a part fits 64 bits for up to 2**31 rows. The AVG of a DECIMAL in 64 bits may be wide, too, and is computed
here: as the quotient of the sum and the count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.expr.nodes import Expr
from freshviews.expr.wide import PARTS
from freshviews.sql.blocks.bound import AggregateCall, over_distinct
from freshviews.sql.expressions import coerce
from freshviews.sql.expressions.arithmetic import quotient
from freshviews.sql.expressions.build import call, integer
from freshviews.sql.expressions.cast import held
from freshviews.types import BIGINT

_Reference = Callable[[AggregateCall], Expr]


def is_wide(aggregate: AggregateCall) -> bool:
    """True for a call of SUM or AVG whose result is a wide decimal."""
    return aggregate.function in ("sum", "avg") and aggregate.type.wide


def wide_aggregate(aggregate: AggregateCall, reference: _Reference) -> Expr:
    """The value of a call over references to others; ``is_wide`` must hold."""
    (argument,) = aggregate.args
    total_type = coerce.total_of(argument.type)
    assert total_type is not None
    parts: tuple[Expr, ...] = ()
    if argument.type.wide:
        parts = tuple(call("wide_part", (argument, integer(number)), BIGINT) for number in range(PARTS))
    if aggregate.distinct:
        (argument, *others), reference = over_distinct((argument, *parts), reference)
        parts = tuple(others)
    if parts:
        total = call("wide_total", tuple(reference(_of("sum", part)) for part in parts), total_type)
    else:
        total = reference(replace(_of("sum", argument), type=total_type))
    if aggregate.function == "sum":
        return held(total)
    count = reference(_of("count", argument) if argument.nullable else AggregateCall("count", (), False, BIGINT))
    return held(quotient(total, count, aggregate.type))


def _of(function: str, argument: Expr) -> AggregateCall:
    return AggregateCall(function, (argument,), False, BIGINT)
