"""Binds MODE, the most frequent value of a group, and percentiles such as PERCENTILE and MEDIAN.

PERCENTILE, PERCENTILE_CONT and MEDIAN interpolate between doubles. As in Spark, PERCENTILE_DISC returns one of the
values as a DOUBLE. APPROX_PERCENTILE returns one of the values in the type of its argument, and is exact here. Spark's
APPROX_PERCENTILE is exact only while its argument ``accuracy`` exceeds the number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from freshviews.expr.nodes import Expr, Literal
from freshviews.query.block import CONTINUOUS, DISCRETE, MODES, Percentile
from freshviews.sql.blocks.bound import AggregateCall
from freshviews.sql.expressions import arithmetic
from freshviews.sql.expressions.build import VOID, Fault, Refusal, null
from freshviews.sql.expressions.cast import cast
from freshviews.sql.text.parse import Node
from freshviews.types import DOUBLE, INT, STRING

_IN_ORDER = ("percentile_cont", "percentile_disc")
_APPROXIMATE = ("percentile_approx", "approx_percentile")
PERCENTILES = frozenset(("percentile", "median", "mode", *_IN_ORDER, *_APPROXIMATE))
"""The functions by lower-case name."""


def percentile_call(
    name: str, arguments: Sequence[Node], distinct: bool, bind: Callable[[Node], Expr], keep: Callable[[Expr], Expr]
) -> AggregateCall:
    """The call of a function of PERCENTILES. ``keep``: applies FILTER to the values. Raises Fault."""
    if distinct:
        raise Refusal(f"{name} of DISTINCT values", "aggregate over SELECT DISTINCT in FROM")
    if name == "mode":
        return _mode(arguments, bind, keep)
    value, given, descending = parts_of(name, arguments)
    fraction = 0.5 if name == "median" else _fraction(name, bind(given[0]))
    if name == "percentile" and given[1:] and _constant(bind(given[1])) != 1:
        raise Refusal(f"{name} with a frequency", "join a table that repeats each row as often as the frequency says")
    if name in _APPROXIMATE and given[1:]:
        accuracy = bind(given[1])
        if not (accuracy.type.is_integer and (_constant(accuracy) or 0) > 0):
            raise Fault(f"the accuracy of {name} must be a constant integer above 0")
    argument = bind(value)
    ordered = argument.type.name in ("DATE", "TIMESTAMP", "INTERVAL") or argument.type.is_numeric
    if name in _APPROXIMATE and ordered:
        return AggregateCall(Percentile(DISCRETE, fraction).kind, (keep(argument),), False, argument.type)
    argument = null(DOUBLE) if argument.type == VOID else cast(arithmetic.numeric(name, argument), DOUBLE)
    function = DISCRETE if name in (*_APPROXIMATE, "percentile_disc") else CONTINUOUS
    return AggregateCall(Percentile(function, fraction, descending).kind, (keep(argument),), False, DOUBLE)


def _mode(
    arguments: Sequence[Node], bind: Callable[[Node], Expr], keep: Callable[[Expr], Expr]
) -> AggregateCall:
    """MODE(x), MODE(x, TRUE), MODE() WITHIN GROUP (ORDER BY x): of several values the first one in the order."""
    value, _, descending = parts_of("mode", arguments)
    argument = bind(value)
    argument = null(INT) if argument.type == VOID else argument
    return AggregateCall(MODES[descending], (keep(argument),), False, argument.type)


def _ordered(name: str, order: exp.Order) -> tuple[Node, bool]:
    """The value of WITHIN GROUP (ORDER BY ...), and True for a descending order."""
    if len(order.expressions) != 1:
        raise Fault(f"{name} takes one value in WITHIN GROUP (ORDER BY ...), not {len(order.expressions)}")
    (ordered,) = order.expressions
    return ordered.this, bool(ordered.args.get("desc"))


def parts_of(name: str, arguments: Sequence[Node]) -> tuple[Node, Sequence[Node], bool]:
    """The argument whose values are ordered, the others, and True for a descending order. Raises Fault."""
    if name == "mode":
        if len(arguments) == 1 and isinstance(arguments[0], exp.Order):
            value, descending = _ordered(name, arguments[0])
            return value, (), descending
        if not 1 <= len(arguments) <= 2:
            raise Fault(f"mode takes 1 or 2 arguments, or WITHIN GROUP (ORDER BY value), not {len(arguments)}")
        if arguments[1:] and not isinstance(arguments[1], exp.Boolean):
            raise Fault("the second argument of mode must be TRUE or FALSE")
        return arguments[0], (), False
    if name in _IN_ORDER:
        order = arguments[0] if len(arguments) == 1 else None
        if not isinstance(order, exp.Order):
            raise Fault(f"{name} needs an order; write {name.upper()}(fraction) WITHIN GROUP (ORDER BY value)")
        value, descending = _ordered(name, order)
        return value, [order.this], descending
    least, most = (1, 1) if name == "median" else (2, 3)
    if not least <= len(arguments) <= most:
        takes = "1 argument" if name == "median" else "2 arguments (a value and a fraction)"
        raise Fault(f"{name} takes {takes}, not {len(arguments)}")
    return arguments[0], arguments[1:], False


def _fraction(name: str, given: Expr) -> float:
    if given.type != STRING and not given.type.is_numeric:
        raise Fault(f"the fraction of {name} must be a constant from 0 to 1, not {given.type}")
    found = _constant(cast(given, DOUBLE))
    if found is None or not 0 <= found <= 1:
        raise Fault(f"the fraction of {name} must be a constant from 0 to 1")
    return float(found)


def _constant(given: Expr) -> float | None:
    return given.value if isinstance(given, Literal) and isinstance(given.value, int | float) else None
