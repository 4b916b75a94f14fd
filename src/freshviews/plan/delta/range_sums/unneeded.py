"""Views that a program with range views does not need: those that nothing reads, and range views that equal a view."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from freshviews.plan.delta.range_sums.range_views import RangeViews
from freshviews.program.program import Program
from freshviews.program.rewrite import Renaming, renamed, transform
from freshviews.program.statements import Add, Body, Exists, Loop, Statement
from freshviews.program.structure import uses, visit


def without_unread(program: Program, stores: frozenset[str]) -> Program:
    """The program without views, of those that have range views, that nothing reads any more, and without indexes that
    nothing needs."""
    statements = [s for trigger in program.triggers for s in visit(trigger.body)]
    read = {view for s in statements for view in uses(s).views}
    watched = {s.view for s in statements if isinstance(s, Add) and (s.appear or s.vanish or s.stay)}
    read |= {view for body in program.result.bodies for s in visit(body) for view in uses(s).views}
    gone = stores - read - watched
    indexes = {(s.view, s.bound) for s in statements if isinstance(s, Loop | Exists)}

    def change(statement: Statement) -> Body:
        return () if isinstance(statement, Add) and statement.view in gone else (statement,)

    views = [
        replace(v, indexes=tuple(i for i in v.indexes if (v.name, i) in indexes)) if v.name in stores else v
        for v in program.views
        if v.name not in gone
    ]
    triggers = tuple(replace(t, body=transform(t.body, change)) for t in program.triggers)
    return replace(program, views=tuple(views), triggers=triggers)


def with_own_ranges(program: Program, stores: Iterable[RangeViews]) -> Program:
    """The program in which a view is its own range view, where both have the same key and components."""
    views = {view.name: view for view in program.views}
    merged: dict[str, str] = {}
    for store in stores:
        key = tuple(range(len(store.view.key)))
        for grouping, one in store.ranges.items():
            same = all(new == old and factor is None for (old, factor), new in one.components.items())
            plain = one.order is not None and not one.looped and same
            if plain and grouping.places == key and store.view.name in views:
                view, ranges = views[store.view.name], views[one.name]
                indexes = tuple(dict.fromkeys((*view.indexes, *ranges.indexes)))
                views[view.name] = replace(view, indexes=indexes, ordered=ranges.ordered, sums=ranges.sums)
                merged[one.name] = view.name
                break
    to = Renaming(views=merged)

    def change(statement: Statement) -> Body:
        if isinstance(statement, Add) and statement.view in merged:
            return ()
        return (renamed(statement, to),)

    triggers = tuple(replace(t, body=transform(t.body, change)) for t in program.triggers)
    return replace(program, views=tuple(v for v in views.values() if v.name not in merged), triggers=triggers)
