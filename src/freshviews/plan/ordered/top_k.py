"""The first rows of a relation, ``ORDER BY ... LIMIT``: all rows are stored in order, and the first ones in the result.

No paper; an order statistic under updates. The rows are the nodes of a search tree (``kernel.ordered.index``, which
also serves MIN and MAX), in the order of SQL and then of all columns, so that no two rows are equal. The tree remembers
two positions, where LIMIT begins and where it ends (``kernel.ordered.top``). A row that appears or vanishes before such
a position shifts the rows across it by one each; they are the neighbours of the position: O(log N) for each. ``SELECT
x, y FROM r ORDER BY x DESC LIMIT 10``::

    r(x, y) -> count  ordered by x desc, y
    Q(x, y) -> count  journal

    on r(x, y) += m:
        r[x, y] += m
            then, as r_row:
                for x_, y_, d in first 10 of r, as r_row grows by m:
                    Q[x_, y_] += d

The query has one relation. ``ORDER BY`` over a join reads a view of its own.
"""

from __future__ import annotations

from freshviews.plan.leaves import all_components, leaf_view, trigger
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.strategy import Request, Strategy
from freshviews.program.payload import COUNT, MULTIPLICITY, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.statements import Add, Top
from freshviews.program.views import Order, View
from freshviews.query.block import Limit
from freshviews.query.query import Query


def is_limited(request: Request) -> str | None:
    """The block is the first rows of an order."""
    if request.block.limit is None:
        return None
    return "the first rows of an order: all are kept in it, and those before its end apart"


def plan(query: Query, limit: Limit) -> Program:
    """The program of the first rows of a bag over one relation."""
    (atom,) = query.atoms
    namer = Namer(query)
    orders = tuple(Order(one.type, one.descending, one.nulls_last) for one in limit.order)
    leaf = leaf_view(query, atom, namer.view(atom.name))
    rows = View(leaf.name, query.free, leaf.components, ordered=orders, definition=leaf.definition)
    result = View(RESULT, query.free, all_components(query), journal=True)
    alias = namer.alias(rows.name)
    key = [namer.fresh(f"{variable}_") for variable in query.free]
    change = namer.fresh("d")
    counted = (Add(RESULT, tuple(key), (COUNT,), (Monomial((Value(change),)),)),)
    top = (Top(alias, MULTIPLICITY.name, limit.offset, limit.offset + limit.limit, tuple(key), change, counted),)
    body = Add(rows.name, query.free, (COUNT,), (Monomial((MULTIPLICITY,)),), top, top, top, alias)
    bounds = (
        ("update", "O(log N), and as much for each row that comes among the first or goes"),
        ("delay", "O(1)"),
        ("space", "O(N)"),
    )
    made = (trigger(query, atom, (body,)),)
    return Program(query.name, query.free, (rows, result), made, Held(RESULT), strategy="top_k", bounds=bounds)


def _plan(request: Request) -> Program:
    assert request.block.limit is not None
    return plan(request.query, request.block.limit)


STRATEGY = Strategy("top_k", _plan)
