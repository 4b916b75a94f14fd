"""Maintains aggregates over frames of ``ROWS BETWEEN``: the rows from ``low`` to ``high`` positions after each row.

A query names its relation twice: for the rows, and for the rows of their frames. No join is needed, because the search
tree of ``plan.ordered.top_k`` finds rows by position. An inserted or deleted row changes only the frames that reach its
position, each by at most two rows.

``SUM(x) OVER (PARTITION BY g ORDER BY y ROWS 9 PRECEDING)`` over ``r(g, y, id, x)``, in the notation of
``program.printer``. The loop visits pairs of a row and a row of its frame, new (d > 0) or former (d < 0)::

    r(g, y, id, x) -> count  ordered by y, id, x  placed
    Q(g, y, id, x) -> count, n_x, sum_x  journal

    on r(g, y, id, x) += m:
        r[g, y, id, x] += m
            then, as r_row:
                for g_, y_, id_, x_, (x_other) -9 to +0, d in r, as r_row grows by m:
                    let n_x = is_not_null(x_other)
                    let sum_x = coalesce(x_other, 0)
                    Q[g_, y_, id_, x_] += (count: d, n_x: d * n_x, sum_x: d * sum_x)
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.plan.leaves import Carrier, parameters_of, product, result_view, trigger, under, update_carrier
from freshviews.plan.naming import RESULT, Namer
from freshviews.program.payload import COUNT, COUNTED, MULTIPLICITY, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.statements import Add, Framed, Let
from freshviews.program.views import Order, View
from freshviews.query.block import Frame, Limit
from freshviews.query.query import Atom, Query


def plan_frames(query: Query, limit: Limit) -> Program:
    """The program of aggregates over the frames of rows. The free variables are those of the rows, then values of rows
    of their frames."""
    assert isinstance(limit.beside, Frame)
    rows_atom, other = query.atoms
    namer = Namer(query)
    key = (*limit.groups, *(one.variable for one in limit.order))
    orders = tuple(Order(one.type, one.descending, one.nulls_last) for one in limit.order)
    rows = View(namer.view(rows_atom.name), key, COUNTED, ordered=orders, definition=rows_atom.relation, placed=True)
    result = result_view(query)
    own = {variable: namer.fresh(f"{variable}_") for variable in key}
    values = {variable: namer.fresh(f"{variable}_other") for variable in key}
    change = namer.fresh("d")
    lets = tuple(Let(one.name, _over(one.expr, rows_atom, values)) for one in parameters_of(query, other))
    # The variables of another row that the body reads are names of this program, so no other expression has them.
    filters = tuple(_over(one, rows_atom, values) for one in other.filters)
    read = {name for expr in (*(let.expr for let in lets), *filters) for name in columns_of(expr)}
    counted = tuple((one.name, Value(change)) for one in query.aggregates)
    lifts = tuple(one for one in update_carrier(query, other).lifts if one[1] != MULTIPLICITY)
    payload = product(result.components, (Carrier(None, frozenset(), (*counted, *lifts)),))
    into = tuple(own.get(variable, variable) for variable in query.free)
    add = Add(RESULT, into, tuple(one.name for one in result.components), payload)
    alias = namer.alias(rows.name)
    pairs = tuple((i, values[variable]) for i, variable in enumerate(key) if values[variable] in read)
    body = under(filters, (*lets, add))
    frame = limit.beside
    report = (Framed(alias, MULTIPLICITY.name, frame.low, frame.high, tuple(own.values()), pairs, change, body),)
    added = Add(rows.name, key, (COUNT,), (Monomial((MULTIPLICITY,)),), report, report, report, alias)
    # The frame of the row itself, and two rows for each row around it whose frame reaches it or beyond.
    pairs_changed = frame.high - frame.low + 1 + 2 * (max(frame.high, 0) + max(-frame.low, 0))
    bounds = (
        ("update", f"O(log N), for each of {pairs_changed} rows that enter or leave frames"),
        ("delay", "O(1)"),
        ("space", "O(N)"),
    )
    made = trigger(replace(query, aggregates=query.aggregates[:1]), rows_atom, (added,))
    return Program(query.name, query.free, (rows, result), (made,), Held(RESULT), strategy="top_k", bounds=bounds)


def _over(expr: Expr, rows: Atom, names: dict[str, str]) -> Expr:
    """An expression over columns of the relation, over the variables of another row."""
    for variable, column in zip(rows.variables, rows.columns, strict=True):
        if expr == column or (isinstance(expr, Column) and isinstance(column, Column) and expr.name == column.name):
            return Column(names[variable], expr.type, expr.nullable)
    return replace(expr, args=tuple(_over(arg, rows, names) for arg in expr.args)) if isinstance(expr, Call) else expr
