"""Maintains what depends on a row's position in its ordered group: first rows, row numbers, ranks and neighbours.

There are three forms, shown here over ``r(g, x, id)`` in the notation of ``program.printer``. The module
``plan.ordered.frames`` maintains frames of rows.

*The first rows of each group*, ``ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) <= 10``::

    r(g, x, id) -> count  ordered by x desc, id  placed
    Q(g, x, id) -> count  journal

    on r(g, x, id) += m:
        r[g, x, id] += m
            then, as r_row:
                for g_, x_, id_, d in first 10 of r, as r_row grows by m:
                    Q[g_, x_, id_] += d

*Rows with their neighbours*, ``LAG(id) OVER (PARTITION BY g ORDER BY x)``::

                for g_, x_, id_, (id_beside) -1 or not there, d in r, as r_row grows by m:
                    Q[g_, x_, id_, there, id_beside] += d

*Rows with their numbers or ranks*, which are updated once per version::

    r(g, x, id) -> count, held, number  ordered by x, id  placed
    touched(g, x, id) -> count
    Q(g, x, id, n) -> count  journal

    on r(g, x, id) += m:
        if r_row := r[g, x, id]:
            for number n of r_row, forgotten:
                Q[g, x, id, n] += -1
        r[g, x, id] += (count: m)
        touched[g, x, id] += 1

    settle:
        for g, x, id, touched_row in touched:
            for g_, x_, id_, number n, d in all of r, new or wrong from [g, x, id] on:
                Q[g_, x_, id_, n] += d
        clear touched
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from freshviews.plan.assemble import assemble
from freshviews.plan.leaves import all_components, leaf_view, trigger
from freshviews.plan.naming import RESULT, Namer
from freshviews.plan.ordered.frames import plan_frames
from freshviews.plan.strategy import Request, Strategy
from freshviews.program.payload import COUNT, COUNTED, MULTIPLICITY, Component, Monomial, Value
from freshviews.program.program import Program
from freshviews.program.results import Held
from freshviews.program.statements import Add, Beside, Body, Clear, Forget, Lookup, Loop, Places, Renumber, Top
from freshviews.program.upkeep import BY_TRIGGERS, Settled, Upkeep
from freshviews.program.views import Order, View
from freshviews.query.block import EVERY, Frame, Limit, Neighbour
from freshviews.query.query import Query

HELD, NUMBER = "held", "number"


def is_limited(request: Request) -> str | None:
    """True if the block has the first rows of an order, or their places in it."""
    limit = request.block.limit
    if limit is None:
        return None
    if limit.beside is not None:
        what = "frames" if isinstance(limit.beside, Frame) else "neighbours"
        return f"{what} in an order: all rows are stored in that order"
    if limit.number or limit.ranks:
        what = "ranks" if limit.ranks else "numbers"
        which = "" if limit.limit >= EVERY else ", the first ones"
        return f"{what} of the rows of an order{which}: all rows are stored in that order"
    whose = " of each group" if limit.groups else ""
    return f"the first rows{whose} of an order: all rows are stored in that order, and the first ones a second time"


def plan(query: Query, limit: Limit) -> Program:
    """The program of the first rows of a bag over one relation, or of the places of its rows."""
    (atom,) = query.atoms
    namer = Namer(query, limit.added)
    orders = tuple(Order(one.type, one.descending, one.nulls_last) for one in limit.order)
    leaf = leaf_view(query, atom, namer.view(atom.name))
    rows = View(leaf.name, query.free, leaf.components, ordered=orders, definition=leaf.definition, placed=True)
    result = View(RESULT, (*query.free, *limit.added), all_components(query), journal=True)
    upkeep: Upkeep = BY_TRIGGERS
    views: tuple[View, ...] = (rows, result)
    if limit.number or limit.ranks:
        rows = replace(rows, components=(*rows.components, Component(HELD, "integer"), Component(NUMBER, "integer")))
        touched = View(namer.view("touched"), query.free, COUNTED, definition="rows whose numbers must be settled")
        body, settle = _number_rows(query, limit, namer, rows, touched)
        upkeep, views = Settled(settle), (rows, touched, result)
    else:
        body = _report_moves(query, limit, namer, rows)
    made = (trigger(query, atom, body),)
    return Program(
        query.name,
        (*query.free, *limit.added),
        views,
        made,
        Held(RESULT),
        strategy="top_k",
        bounds=(("update", _update_bound(limit)), ("delay", "O(1)"), ("space", "O(N)")),
        upkeep=upkeep,
    )


def _update_bound(limit: Limit) -> str:
    if isinstance(limit.beside, Neighbour):
        return f"O(log N), for each of {abs(limit.beside.shift) + 1} rows"
    if not (limit.number or limit.ranks):
        return "O(log N), and again O(log N) for each row that enters or leaves the first ones"
    what = f"{'rank' if limit.ranks else 'number'}{'' if limit.limit >= EVERY else ' among the first'}"
    return f"O(log N), and again O(log N) for each row whose {what} changes"


def _report_moves(query: Query, limit: Limit, namer: Namer, rows: View) -> Body:
    """The trigger of a row, if the rows that a change moves are reported at once.

    A row that appears before the last place moves one row out; a row that vanishes moves one in. Each takes O(log N).
    With neighbours, a changed row affects only the rows within the distance of LAG or LEAD.
    """
    alias, key, change = namer.alias(rows.name), _fresh_key(query, namer), namer.fresh("d")
    counted = (Add(RESULT, (*key, *limit.added), (COUNT,), (Monomial((Value(change),)),)),)
    report: Top | Beside
    if isinstance(limit.beside, Neighbour):
        other = tuple((query.free.index(own), name) for own, name in limit.beside.columns)
        there = limit.beside.there
        report = Beside(alias, MULTIPLICITY.name, limit.beside.shift, key, other, there, change, counted)
    else:
        report = Top(alias, MULTIPLICITY.name, limit.offset, limit.offset + limit.limit, key, change, counted)
    then = (report,)
    return (Add(rows.name, query.free, (COUNT,), (Monomial((MULTIPLICITY,)),), then, then, then, alias),)


def _number_rows(query: Query, limit: Limit, namer: Namer, rows: View, touched: View) -> tuple[Body, Body]:
    """The trigger of a row whose place is a number, and the statements that settle the numbers.

    Each row stores the numbers that Q has for it. A walk begins at a changed row and ends at the first row whose stored
    numbers are right. It takes O(log N) for each row whose number changed.
    """
    places = Places(rows.name, limit.limit, limit.ranks)
    number = limit.number or namer.fresh("n")

    def into_result(key: tuple[str, ...], times: Monomial) -> Body:
        return (Add(RESULT, (*key, *limit.added), (COUNT,), (times,)),)

    alias = namer.alias(rows.name)
    forget = Forget(alias, places, number, into_result(query.free, Monomial((), -1)))
    body = (
        Lookup(rows.name, query.free, alias, (forget,)),
        Add(rows.name, query.free, (COUNT,), (Monomial((MULTIPLICITY,)),)),
        # Always adds 1, not the multiplicity: counts of both signs must not cancel out.
        Add(touched.name, query.free, (COUNT,), (Monomial(()),)),
    )
    key, change = _fresh_key(query, namer), namer.fresh("d")
    counted = into_result(key, Monomial((Value(change),)))
    renumber = Renumber(places, query.free, key, number, change, counted)
    settle = (Loop(touched.name, query.free, (), namer.alias(touched.name), (renumber,)), Clear(touched.name))
    return body, settle


def _fresh_key(query: Query, namer: Namer) -> tuple[str, ...]:
    """Variables of another row."""
    return tuple(namer.fresh(f"{variable}_") for variable in query.free)


def _plan(request: Request) -> Program:
    limit = request.block.limit
    assert limit is not None
    if isinstance(limit.beside, Frame):
        return assemble(request.block, partial(plan_frames, limit=limit), bool(request.negative))
    return plan(request.query, limit)


STRATEGY = Strategy("top_k", _plan)
