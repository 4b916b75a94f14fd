"""Removes views of a program that nothing reads, and range views that equal another view."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from freshviews.plan.delta.range_sums.range_views import Places, RangeViews
from freshviews.program.program import Program
from freshviews.program.results import Listed
from freshviews.program.rewrite import Renaming, renamed, with_statements
from freshviews.program.statements import Add, Body, Exists, Lookup, Loop, Statement
from freshviews.program.structure import uses, views_in, visit


def without_unread(program: Program, stores: frozenset[str]) -> Program:
    """The program without those views with range views that nothing reads any more, and without indexes that nothing
    needs."""
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
    return replace(with_statements(program, change), views=tuple(views))


def with_own_ranges(program: Program, stores: Iterable[RangeViews]) -> Program:
    """The program in which a view is its own range view, if both have the same components, and keys that differ at most
    in the order of their columns."""
    views = {view.name: view for view in program.views}
    merged: dict[str, str] = {}
    permuted: dict[str, Places] = {}
    for store in stores:
        name, key = store.view.name, tuple(range(len(store.view.key)))
        for grouping, one in store.ranges.items():
            same = all(new == old and factor is None for (old, factor), new in one.components.items())
            plain = one.order is not None and not one.looped and same and name in views
            if not plain or (grouping.places != key and not _can_be_permuted(program, name, grouping.places)):
                continue
            view, ranges, places = views[name], views[one.name], grouping.places
            own = (_moved(index, places) for index in view.indexes)
            indexes = tuple(dict.fromkeys((*own, *ranges.indexes)))
            views[name] = replace(view, key=ranges.key, indexes=indexes, ordered=ranges.ordered, sums=ranges.sums)
            merged[one.name] = name
            permuted[name] = places
            break
    to = Renaming(views=merged)

    def change(statement: Statement) -> Body:
        if isinstance(statement, Add) and statement.view in merged:
            return ()
        if isinstance(statement, Add | Lookup | Loop) and statement.view in permuted:
            places = permuted[statement.view]
            moved = replace(statement, key=tuple(statement.key[i] for i in places))
            return (replace(moved, bound=_moved(moved.bound, places)) if isinstance(moved, Loop) else moved,)
        return (renamed(statement, to),)

    kept = tuple(view for view in views.values() if view.name not in merged)
    return replace(with_statements(program, change), views=kept)


def _can_be_permuted(program: Program, name: str, places: Places) -> bool:
    """True if the columns of a view's key can be put in another order, ``places``: triggers alone read the view, by
    statements that name its columns."""
    if isinstance(program.result, Listed) or name == getattr(program.result, "view", None):
        return False
    if sorted(places) != list(range(len(program.view(name).key))):
        return False
    if any(name in views_in(s) for body in program.result.bodies for s in visit(body)):
        return False
    mentions = [s for trigger in program.triggers for s in visit(trigger.body) if name in views_in(s)]
    return all(isinstance(s, Add | Lookup | Loop) for s in mentions)


def _moved(positions: Places, places: Places) -> Places:
    """Positions of a key, where its columns are in the order ``places``."""
    return tuple(sorted(map(places.index, positions)))
