"""Defines a condition of queries: that one row lies in the window frame of another row.

The frame of a row is a range in the order of the window. The condition is a call, so that it is renamed and printed
with the other conditions of a query. Only strategy ``top_k`` evaluates it, by ranges of an ordered index.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.query.query import Query
from freshviews.records import dataclass
from freshviews.types import BOOLEAN, INT

OPERATION = "in_frame"
_DESCENDING, _NULLS_LAST = 1, 2
_NONE, _PLACE, _COLUMN = 0, 1, 2


@dataclass(frozen=True)
class Span:
    """The rows from ``low`` to ``high`` in an order.

    ``row``: the place of the row, an expression for each column of the order; ``place``: the place whose frame it is.
    ``descending`` and ``nulls_last`` have a flag for each. A bound has values for the first columns of the order: those
    of the place itself, or one column of the place that no greater place has smaller; None for no bound.
    """

    row: tuple[Expr, ...]
    place: tuple[Expr, ...]
    descending: tuple[bool, ...]
    nulls_last: tuple[bool, ...]
    low: tuple[Expr, ...] | None
    high: tuple[Expr, ...] | None

    def __str__(self) -> str:
        row, place = _listed(self.row), _listed(self.place)
        parts = ("" if one is None else place if one == self.place else _listed(one) for one in (self.low, self.high))
        low, high = parts
        flags = zip(self.descending, self.nulls_last, strict=True)
        words = ((" desc" * d + ("" if d == n else " nulls last" if n else " nulls first")).strip() for d, n in flags)
        order = "" if not any(found := tuple(words)) else f" ({', '.join(one or 'asc' for one in found)})"
        return f"{low}{' <= ' * bool(low)}{row}{' <= ' * bool(high)}{high}{order}"

    @property
    def has_place(self) -> bool:
        """True if each place is within its own bounds by their kind; False if that depends on values."""
        return all(one is None or one == self.place for one in (self.low, self.high))

    @property
    def reversed(self) -> Span:
        """The same rows, in the opposite order."""
        descending, nulls_last = (tuple(not flag for flag in one) for one in (self.descending, self.nulls_last))
        return replace(self, descending=descending, nulls_last=nulls_last, low=self.high, high=self.low)

    @property
    def condition(self) -> Call:
        """The span as a condition. Its literals say how many columns the order has, their directions, and the kinds of
        the bounds."""
        bounds = (self.low, self.high)
        kinds = (_NONE if one is None else _PLACE if one == self.place else _COLUMN for one in bounds)
        flags = (d * _DESCENDING | n * _NULLS_LAST for d, n in zip(self.descending, self.nulls_last, strict=True))
        numbers = tuple(Literal(int(one), INT) for one in (len(self.place), *flags, *kinds))
        columns = (one[0] for one in bounds if one is not None and one != self.place)
        return Call(OPERATION, (*numbers, *self.row, *self.place, *columns), BOOLEAN, False)


def span_of(query: Query) -> Span | None:
    """The span among the conditions of a query; None if there is none."""
    return next((found for one in query.conditions if (found := as_span(one)) is not None), None)


def as_span(made: Expr) -> Span | None:
    """A condition as a span; None for another one."""
    if not isinstance(made, Call) or made.op != OPERATION:
        return None
    width = _number(made.args[0])
    flags, kinds = map(_number, made.args[1 : width + 1]), map(_number, made.args[width + 1 : width + 3])
    rest = made.args[width + 3 :]
    row, place, columns = rest[:width], rest[width : 2 * width], iter(rest[2 * width :])
    directions = tuple((bool(flag & _DESCENDING), bool(flag & _NULLS_LAST)) for flag in flags)
    low, high = (None if kind == _NONE else place if kind == _PLACE else (next(columns),) for kind in kinds)
    descending, nulls_last = zip(*directions, strict=True)
    return Span(row, place, descending, nulls_last, low, high)


def _listed(exprs: tuple[Expr, ...]) -> str:
    """One expression, or several in parentheses."""
    return str(exprs[0]) if len(exprs) == 1 else f"({', '.join(map(str, exprs))})"


def _number(expr: Expr) -> int:
    assert isinstance(expr, Literal)
    return int(expr.value or 0)
