"""Maintains aggregates over the frames of places: the rows between two bounds of each place of an order.

The query joins places with rows by their group and by the condition ``query.span.Span``. Both are stored in the order,
so an update visits the places whose frame has its row, and a new place reads the sums of its frame.

``SUM(x) OVER (PARTITION BY g ORDER BY y, s DESC)``, in the notation of ``program.printer``. ``p`` has the distinct
places of ``r(g, y, s, x)``::

    places(g, y, s) -> count  by [g]  ordered by y, s desc
    rows(g, y, s) -> count, n_x, sum_x  by [g]  ordered by y, s desc  summed by count, n_x, sum_x
    Q(g, y, s) -> count, n_x, sum_x  journal

    on p(g, y, s) += m:
        u = sum:
            u += rows[g, (y, s) <= (y, s)]
        if u:
            Q[g, y, s] += m * u
        places[g, y, s] += m

    on r(g, y, s, x) += m:
        for y_, s_, place in places[g, (y, s) <= (y, s)]:
            Q[g, y_, s_] += (count: m * place, n_x: m * is_not_null(x) * place, sum_x: m * coalesce(x, 0) * place)
        rows[g, y, s] += (count: m, n_x: m * is_not_null(x), sum_x: m * coalesce(x, 0))
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.expr.nodes import Column, Expr
from freshviews.plan.assemble import assemble
from freshviews.plan.leaves import (
    Carrier,
    components_over,
    product,
    result_view,
    row_carrier,
    sum_carrier,
    trigger,
    update_carrier,
)
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.strategy import Request, Strategy
from freshviews.program.payload import COUNT, COUNTED, MULTIPLICITY, Monomial
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.statements import Add, Body, Let, PlaceBound, Range, RangeLoop, RangeSum, Sum
from freshviews.program.views import Order, View
from freshviews.query.query import Atom, Query
from freshviews.query.span import Span, span_of
from freshviews.types import SqlType


def is_spanned(request: Request) -> str | None:
    """True if the block has aggregates over frames of places."""
    if span_of(request.query) is None:
        return None
    return "frames of places in an order: places and rows are stored in that order"


def plan(query: Query) -> Program:
    """The program of aggregates over the frames of places. Free variables of the rows are arguments of aggregates over
    distinct values."""
    span = span_of(query)
    assert span is not None
    return _Planner(query, span).program()


class _Planner:
    """Plans one query, of two atoms: the rows, then the places."""

    def __init__(self, query: Query, span: Span) -> None:
        self.query, self.span = query, span
        self.rows_atom, self.places_atom = query.atoms
        self.namer = Namer(query)
        kinds = zip(span.place, span.descending, span.nulls_last, strict=True)
        self.orders = tuple(Order(one.type, descending, last) for one, descending, last in kinds)
        own, of_rows = self.places_atom.variables, self.rows_atom.variables
        self.group = tuple(v for v in own if v in of_rows)
        self.place = tuple(map(_name, span.place))
        bounds = (one for one in (span.low, span.high) if one is not None and one != span.place)
        self.columns = tuple(dict.fromkeys(_name(one[0]) for one in bounds))
        self.values = tuple(v for v in query.free if v not in own)
        self.result = result_view(query)
        orders = (*self.orders, *(self.orders[0] for _ in self.columns))
        self.places = self._view(self.places_atom, (*self.place, *self.columns), orders)
        # The names of the columns of computed places are of no importance.
        of_rows = tuple(one.name if isinstance(one, Column) else self.namer.fresh("place") for one in span.row)
        values = tuple(Order(_type_of(self.rows_atom, v)) for v in self.values)
        rows = self._view(self.rows_atom, (*of_rows, *self.values), (*self.orders, *values))
        components = components_over(query, frozenset({self.rows_atom.name}))
        self.sums = not values and all(c.ring in ("integer", "real") for c in components)
        summed = tuple(c.name for c in components) if self.sums else ()
        self.rows = replace(rows, components=components, sums=summed)

    def _view(self, atom: Atom, key: tuple[str, ...], orders: tuple[Order, ...]) -> View:
        """The places or the rows: their group, then their place and more, in order."""
        columns = list(self.group)
        for one in key:
            columns.append(self.namer.fresh(f"{one}_") if one in columns else one)
        group = tuple(range(len(self.group)))
        indexes, what = ((group,) if group else ()), f"{atom.relation}, in the order of {', '.join(key)}"
        return View(self.namer.view(atom.name), tuple(columns), COUNTED, indexes, orders, definition=what)

    def program(self) -> Program:
        triggers = (
            trigger(self.query, self.places_atom, self._on_place()),
            trigger(self.query, self.rows_atom, self._on_row()),
        )
        views, bounds = (self.places, self.rows, self.result), _OF_VALUES if self.values else _BOUNDS
        return Program(
            self.query.name, self.query.free, views, triggers, Held(RESULT), strategy="top_k", bounds=bounds
        )

    def _on_place(self) -> Body:
        """The trigger of a place: its frame is added to its result, or subtracted."""
        bounds = (self.span.low, self.span.high)
        ends = (None if one is None else PlaceBound(tuple(map(_name, one))) for one in bounds)
        frame = Range(self.rows.name, self.group, *ends)
        alias = self.namer.alias(self.rows.name)
        update = update_carrier(self.query, self.places_atom)
        own = (*self.place, *self.columns)
        added = Add(self.places.name, (*self.group, *own), (COUNT,), (Monomial((MULTIPLICITY,)),))
        if self.sums:
            add = self._add({}, (update, sum_carrier(alias, self.rows.components)))
            return (Sum(alias, self.rows.components, (RangeSum(alias, frame),), (add,)), added)
        key = tuple(self.namer.fresh(f"{one}_") for one in self.rows.key[len(self.group) :])
        to = dict(zip(self.values, key[len(self.place) :], strict=True))
        add = self._add(to, (update, row_carrier(alias, self.rows)))
        return (RangeLoop(frame, key, alias, (add,)), added)

    def _on_row(self) -> Body:
        """The trigger of a row: it enters the frames that have its place, or leaves them."""
        lets = tuple(Let(self.namer.fresh("place"), one) for one in self.span.row if not isinstance(one, Column))
        known = {let.expr: let.variable for let in lets}
        place = tuple(known.get(one) or _name(one) for one in self.span.row)
        # A frame has the row if its high end is at the place of the row or after it, and its low end at it or before.
        ends = (self._end(self.span.high, place), self._end(self.span.low, place))
        alias = self.namer.alias(self.places.name)
        key = tuple(self.namer.fresh(f"{one}_") for one in self.places.key[len(self.group) :])
        update = update_carrier(self.query, self.rows_atom)
        to = dict(zip(self.place, key, strict=False))
        loop = RangeLoop(
            Range(self.places.name, self.group, *ends),
            key,
            alias,
            (self._add(to, (update, row_carrier(alias, self.places))),),
        )
        payload = product(self.rows.components, (update,))
        names = tuple(c.name for c in self.rows.components)
        return (*lets, loop, Add(self.rows.name, (*self.group, *place, *self.values), names, payload))

    def _end(self, bound: tuple[Expr, ...] | None, place: tuple[str, ...]) -> PlaceBound | None:
        """A bound of the places whose frames have a place: that of the ends of their frames."""
        if bound is None:
            return None
        if bound == self.span.place:
            return PlaceBound(place)
        return PlaceBound(place, len(self.place) + self.columns.index(_name(bound[0])))

    def _add(self, to: dict[str, str], carriers: tuple[Carrier, ...]) -> Add:
        """An addition to the result, whose free variables have other names in a loop."""
        payload = product(self.result.components, carriers)
        key = tuple(to.get(variable, variable) for variable in self.query.free)
        return Add(RESULT, key, tuple(c.name for c in self.result.components), payload)


def _name(expr: Expr) -> str:
    assert isinstance(expr, Column)
    return expr.name


def _type_of(atom: Atom, variable: str) -> SqlType:
    return atom.columns[atom.variables.index(variable)].type


_BOUNDS = (
    ("update", "O(log N), and O(1) for each place whose frame has the row"),
    ("delay", "O(1)"),
    ("space", "O(N + |result|)"),
)
_OF_VALUES = (
    ("update", f"{_BOUNDS[0][1].replace('O(1)', 'O(log N)')}; for a new place, O(log N) for each row of its frame"),
    ("delay", "O(1)"),
    ("space", "O(N), and the distinct values of each frame"),
)


def _plan(request: Request) -> Program:
    made = assemble(request.block, plan, bool(request.negative))
    return replace(made, bounds=_OF_VALUES) if request.block.distinct else made


STRATEGY = Strategy("top_k", _plan)
