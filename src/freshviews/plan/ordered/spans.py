"""Maintains aggregates over window frames. Rows of a group with equal ORDER BY columns share a *place* and its frame.

The query joins each place with the rows between two bounds, its frame (``query.span.Span``). Both are stored in the
order. So an updated row visits only the places whose frames have it, and a new place reads the sums of its frame.

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

An aggregate in a semigroup folds the rows of a frame. It reads O(log N) subtrees, so no frame stores its values. For
``MIN(x)``, where ``least#n`` is 1 if there is a value::

    places(g, y, s) -> count  by [g]  ordered by y, s desc
    least_rows(g, y, s, x) -> count  ordered by y, s desc, x  folded by min
    Q(g, y, s) -> count, least, least#n  journal

    on p(g, y, s) += m:
        Q[g, y, s] += (count: m)
        places[g, y, s] += m
            appears:  Q[g, y, s].least, least#n = min of least_rows[g, (y, s) <= (y, s)]
            vanishes: Q[g, y, s].least, least#n = none

    on r(g, y, s, x) += m:
        where is_not_null(x)
        least_rows[g, y, s, x] += m
            appears:  for y_, s_, place in places[g, (y, s) <= (y, s)], until nothing changes:
                          Q[g, y_, s_].least, least#n = min of least_rows[g, (y, s) <= (y_, s_)]
            vanishes: the same

With one-sided bounds, a larger frame contains every smaller one. If the least value of a frame stays, a larger frame
has a row with a value as small, so its least value stays, too. For ``MIN_BY``, the result has both values of the
row, because another row may have one of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from freshviews.expr.nodes import Column, Expr
from freshviews.plan.assemble import assemble, components_of, number_of
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
from freshviews.plan.naming import RESULT, Namer, names_in
from freshviews.plan.strategy import Request, Strategy
from freshviews.program.payload import COUNT, COUNTED, MULTIPLICITY, Component, Monomial
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.statements import Add, Body, Let, PlaceBound, Range, RangeLoop, RangeSum, Scan, Sum
from freshviews.program.views import Order, View
from freshviews.query.block import BY, SCANNED, DistinctAggregate
from freshviews.query.query import Atom, Query
from freshviews.query.span import Span, span_of
from freshviews.types import SqlType


def is_spanned(request: Request) -> str | None:
    """True if the block has aggregates over frames of places."""
    if span_of(request.query) is None:
        return None
    return "frames of places in an order: places and rows are stored in that order"


def plan(query: Query, folded: Sequence[DistinctAggregate] = (), counted: bool = True) -> Program:
    """The program of aggregates over the frames of places. Free variables of the rows are arguments of aggregates over
    distinct values. ``folded``: aggregates in a semigroup, computed by folds. Unless ``counted``, the result has its
    places alone, without the counts and sums of their frames."""
    span = span_of(query)
    assert span is not None
    if folded and span.high is None:
        # A loop over places begins with the smallest frame that has the row.
        span = span.reversed
    planner = _Planner(query, span)
    made = planner.program(counted)
    for alike in _alike(folded):
        made = planner.with_folds(made, alike)
    if folded:
        few = not counted and span.low is None
        made = replace(made, bounds=_OF_FOLDS if few else _OF_ALL_FOLDS)
    return made


def _by_of(name: str) -> str:
    """The component that has the first of the two values of a MIN_BY or MAX_BY."""
    return name + "#by"


def _alike(aggregates: Sequence[DistinctAggregate]) -> list[tuple[DistinctAggregate, ...]]:
    """Aggregates by the values that they read."""
    groups: dict[Query, list[DistinctAggregate]] = {}
    for one in aggregates:
        groups.setdefault(replace(one.query, name=""), []).append(one)
    return list(map(tuple, groups.values()))


class _Planner:
    """Plans one query, of two atoms: the rows, then the places."""

    def __init__(
        self, query: Query, span: Span, orders: tuple[Order, ...] = (), taken: frozenset[str] = frozenset()
    ) -> None:
        self.query, self.span = query, span
        self.rows_atom, self.places_atom = query.atoms
        self.namer = Namer(query, taken)
        kinds = zip(span.place, span.descending, span.nulls_last, strict=True)
        self.orders = orders or tuple(Order(one.type, descending, last) for one, descending, last in kinds)
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

    def program(self, counted: bool) -> Program:
        """The program without folds."""
        on_place = trigger(self.query, self.places_atom, self._on_place() if counted else self._on_place_alone())
        on_row = (trigger(self.query, self.rows_atom, self._on_row()),) if counted else ()
        views = (self.places, *((self.rows,) if counted else ()), self.result)
        bounds = _OF_VALUES if self.values else _BOUNDS
        return Program(
            self.query.name,
            self.query.free,
            views,
            (on_place, *on_row),
            Held(RESULT),
            strategy="top_k",
            bounds=bounds,
        )

    def with_folds(self, made: Program, alike: tuple[DistinctAggregate, ...]) -> Program:
        """A program of this query with aggregates that are folds over the same values."""
        query, kinds = alike[0].query, tuple(dict.fromkeys(one.kind for one in alike))
        span = span_of(query)
        assert span is not None
        own = _Planner(query, span, self.orders, frozenset(names_in(made)))
        name = own.namer.view(f"{alike[0].name}_{own.rows.name}")
        rows = replace(own.rows, name=name, components=COUNTED, indexes=(), folds=kinds)

        def scans(names: dict[str, str], is_there: bool = True) -> Body:
            """The values of the place that has these names."""
            low, high = (
                PlaceBound(tuple(names.get(_name(one), _name(one)) for one in bound)) if bound and is_there else None
                for bound in (self.span.low, self.span.high)
            )
            key = tuple(names.get(variable, variable) for variable in self.query.free)
            return tuple(
                Scan(
                    RESULT, key, d.name, name, self.group, d.kind if is_there else "", low, high, number_of(d.name),
                    _by_of(d.name) if d.kind in BY else "",
                )
                for d in alike
            )  # fmt: skip

        key = tuple(own.namer.fresh(f"{one}_") for one in self.places.key[len(self.group) :])
        lets, place = own.place_of_row()
        loop = RangeLoop(
            Range(self.places.name, self.group, *self._ends_around(place)),
            key,
            own.namer.alias(self.places.name),
            scans(dict(zip((*self.place, *self.columns), key, strict=True))),
            steady=self.span.low is None,
        )
        into = (*self.group, *place, *own.values)
        add = Add(name, into, (COUNT,), (Monomial((MULTIPLICITY,)),), appear=(loop,), vanish=(loop,))
        on_place, *others = made.triggers
        *before, added = on_place.body
        assert isinstance(added, Add)
        added = replace(added, appear=(*added.appear, *scans({})), vanish=(*added.vanish, *scans({}, False)))
        result = made.view(RESULT)
        bys = tuple(Component(_by_of(d.name), "integer") for d in alike if d.kind in BY)
        components = (*result.components, *(c for d in alike for c in components_of(d)), *bys)
        kept = [self._in_order(v) if loop.steady else v for v in made.views if v != result]
        views = (*kept, rows, replace(result, components=components))
        on_row = trigger(query, own.rows_atom, (*lets, add))
        return replace(
            made,
            views=views,
            triggers=(replace(on_place, body=(*before, added)), *others, on_row),
        )

    def _in_order(self, view: View) -> View:
        """The view; if it has the places, without the index by which small groups would be kept in no order."""
        return replace(view, indexes=()) if view.name == self.places.name else view

    def _on_place_alone(self) -> Body:
        """The trigger of a place, if the result counts nothing of its frame."""
        key = (*self.group, *self.place, *self.columns)
        counts = Monomial((MULTIPLICITY,))
        return Add(RESULT, self.query.free, (COUNT,), (counts,)), Add(self.places.name, key, (COUNT,), (counts,))

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
        lets, place = self.place_of_row()
        alias = self.namer.alias(self.places.name)
        key = tuple(self.namer.fresh(f"{one}_") for one in self.places.key[len(self.group) :])
        update = update_carrier(self.query, self.rows_atom)
        to = dict(zip(self.place, key, strict=False))
        loop = RangeLoop(
            Range(self.places.name, self.group, *self._ends_around(place)),
            key,
            alias,
            (self._add(to, (update, row_carrier(alias, self.places))),),
        )
        payload = product(self.rows.components, (update,))
        names = tuple(c.name for c in self.rows.components)
        return (*lets, loop, Add(self.rows.name, (*self.group, *place, *self.values), names, payload))

    def place_of_row(self) -> tuple[tuple[Let, ...], tuple[str, ...]]:
        """The variables of the place of a row, and the statements that compute some of them."""
        lets = tuple(Let(self.namer.fresh("place"), one) for one in self.span.row if not isinstance(one, Column))
        known = {let.expr: let.variable for let in lets}
        return lets, tuple(known.get(one) or _name(one) for one in self.span.row)

    def _ends_around(self, place: tuple[str, ...]) -> tuple[PlaceBound | None, PlaceBound | None]:
        """The bounds of the places whose frames have a place: the high end of such a frame is at the place or after it,
        and its low end at it or before."""
        return self._end(self.span.high, place), self._end(self.span.low, place)

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
_OF_FOLDS = (
    ("update", "O(log N), and again O(log N) for each place whose value changes"),
    ("delay", "O(1)"),
    ("space", "O(N)"),
)
_OF_ALL_FOLDS = (
    ("update", "O(log N), and again O(log N) for each place whose frame has the row"),
    ("delay", "O(1)"),
    ("space", "O(N)"),
)


def _plan(request: Request) -> Program:
    block, span = request.block, span_of(request.query)
    assert span is not None
    folded = tuple(one for one in block.distinct if one.kind in SCANNED)
    rest = tuple(one for one in block.distinct if one not in folded)
    read = {component for result in block.results for component in result.components}
    # The result counts the rows of frames unless all that is read of a frame is folds, and no frame is empty.
    counted = not (folded and not rest and read.issubset(d.name for d in folded) and span.has_place)

    def planned(query: Query) -> Program:
        return plan(query, folded, counted) if query == block.query else plan(query)

    made = assemble(replace(block, distinct=rest), planned, bool(request.negative))
    return replace(made, bounds=_OF_VALUES) if rest else made


STRATEGY = Strategy("top_k", _plan)
