r"""Selects the rows whose running sum is within a limit.

VWAP, from DBToaster's finance suite (Ahmad, Kennedy, Koch and Nikolic, VLDB 2012), selects the bids b with::

    0.25 * (SELECT SUM(volume) FROM bids) > (SELECT SUM(volume) FROM bids AS s WHERE s.price > b.price)

Each price is a *point* of a search tree (``kernel.ordered.threshold_tree``). Its weight is the volume at this price.
``before`` is the sum of the weights at higher prices, NULL if there are none. The view ``v#1`` has the limit::

    bids(price, volume) -> count  by [price]
    points(price) -> rows, weight, number, selected  by []  ordered by price desc  runs before, or NULL
    limits(limit) -> count
    touched() -> count
    Q(price, volume) -> count  journal

                point 101: before 60, weight 40
                  /                         \
    point 103: NULL, weight 60         point 99: before 100, weight 10

    on bids(price, volume) += m:        adds the row to bids, and to Q if its point is selected
    on bids(price, volume) += m:        adds to the weight of its point
    on v#1(limit) += m:                 changes the limit
    settle:                             after all batches of a version:
        for each touched group:
            for price, d in points by value < limit:
                for volume, b in bids[price]:
                    Q[price, volume] += d * b
"""

from __future__ import annotations

from collections.abc import Callable

from freshviews.plan.leaves import leaf_view, trigger
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.strategy import Request, Strategy
from freshviews.program.payload import COUNT, COUNTED, MULTIPLICITY, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Held
from freshviews.program.statements import Add, Body, Clear, Cross, Lookup, Loop, Tally
from freshviews.program.upkeep import Settled
from freshviews.program.views import Order, Running, View
from freshviews.query.block import Selection
from freshviews.query.query import Query

ROWS, WEIGHT, NUMBER, SELECTED = "rows", "weight", "number", "selected"


def selects(request: Request) -> str | None:
    """True if the block selects rows by a threshold."""
    selection = request.block.selection
    if selection is None:
        return None
    value = "a column" if selection.value == "itself" else "a sum over a range"
    return f"rows are selected by {value} and a limit that changes: a search tree finds the rows that enter or leave"


def plan(query: Query, selection: Selection) -> Program:
    """The program of a selection.

    The points are the prices, from the highest to the lowest. The weight of a point is the volume at that price. The
    value of a point is the sum of the weights before it, or NULL if there are none (``runs before, or NULL``). The
    limit is a row of an internal view. A bid changes the values of all prices below its own, so values are not stored.
    A subtree stores the greatest value of its selected points and the least value of its unselected points, relative to
    its first point (Cormen, Leiserson, Rivest and Stein, Introduction to Algorithms, augmented search trees).
    """
    namer = Namer(query)
    rows_atom, limits_atom = query.atom(selection.rows), query.atom(selection.limits)
    group, point = selection.group, selection.point
    on_point = tuple(rows_atom.variables.index(v) for v in (*group, point))
    rows = leaf_view(query, rows_atom, namer.view(rows_atom.name), (on_point,))
    components = tuple(Component(name, "integer") for name in (ROWS, WEIGHT, NUMBER, SELECTED))
    value = "negated" if selection.value == "itself" and selection.negated else selection.value
    points = View(
        namer.view("points"),
        (*group, point),
        components,
        (tuple(range(len(group))),),
        (Order(selection.type, selection.descending),),
        tally=SELECTED,
        running=Running(value, selection.nullable),
        definition=f"sums by {point}",
    )
    grouped = (tuple(range(len(group))),) if group else ()
    limits = View(namer.view("limits"), (*group, selection.limit), COUNTED, grouped, definition="the limit of a group")
    touched = View(namer.view("touched"), group, COUNTED, definition="groups to be settled")
    result = View(RESULT, query.free, COUNTED, journal=True)

    def note(body: Body) -> Body:
        # Always adds 1, not the multiplicity: counts of both signs must not cancel out.
        return (*body, Add(touched.name, group, (COUNT,), (Monomial(()),)))

    def of_row(sign: int) -> Body:
        return note((Add(points.name, points.key, (ROWS,), (Monomial((), sign),)),))

    def into_result(*factors: ComponentOf | Value) -> Body:
        return (Add(RESULT, query.free, (COUNT,), (Monomial(factors),)),)

    there = namer.alias(points.name)
    selected = Lookup(points.name, points.key, there, (Tally(there, SELECTED, 0, 1, into_result(MULTIPLICITY)),))
    row = Add(rows.name, rows.key, (COUNT,), (Monomial((MULTIPLICITY,)),), of_row(1), of_row(-1))
    triggers = [trigger(query, rows_atom, (selected, row))]
    if selection.weights:
        triggers.append(_weighing(query, selection, namer, points, note))
    limit = Add(limits.name, limits.key, (COUNT,), (Monomial((MULTIPLICITY,)),))
    triggers.append(trigger(query, limits_atom, note((limit,))))
    change, alias = namer.fresh("d"), namer.alias(rows.name)
    turned = Loop(rows.name, rows.key, on_point, alias, into_result(Value(change), ComponentOf(alias, COUNT)))
    cross = Cross(points.name, group, selection.limit, selection.strict, point, change, (turned,))
    bound = tuple(range(len(group)))
    by_limit = Loop(limits.name, limits.key, bound, namer.alias(limits.name), (cross,), optional=True)
    settle = (Loop(touched.name, group, (), namer.alias(touched.name), (by_limit,)), Clear(touched.name))
    bounds = (
        ("update", "O(log N), and again O(log N) for each row that enters or leaves the selection"),
        *((("limit", "O(log N) for each group whose limit changes"),) if group else ()),
        ("delay", "O(1)"),
        ("space", "O(N)"),
    )
    return Program(
        query.name,
        query.free,
        (rows, points, limits, touched, result),
        tuple(triggers),
        Held(RESULT),
        strategy="threshold",
        bounds=bounds,
        upkeep=Settled(settle),
    )


def _weighing(query: Query, selection: Selection, namer: Namer, points: View, note: Callable[[Body], Body]) -> Trigger:
    """The trigger of the relation whose rows have the weights."""
    atom = query.atom(selection.weights)
    payload = []
    for name, sign in ((WEIGHT, -1 if selection.negated else 1), (NUMBER, 1)):
        aggregate = next(one for one in query.aggregates if one.name == name)
        lifts = tuple(Value(namer.lift(lift, aggregate)) for lift in aggregate.lifts)
        payload.append(Monomial((MULTIPLICITY, *lifts), sign))
    return trigger(query, atom, note((Add(points.name, points.key, (WEIGHT, NUMBER), tuple(payload)),)))


def _plan(request: Request) -> Program:
    assert request.block.selection is not None
    return plan(request.query, request.block.selection)


STRATEGY = Strategy("threshold", _plan)
