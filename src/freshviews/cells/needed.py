"""Decides which views the cells compute, and which views the merging engine computes.

Cells compute each view that reads a table. The merging engine computes the views that read no table.
"""

from __future__ import annotations

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.definitions import ViewDef


def reads_views_alone(view: ViewDef, catalog: Catalog) -> bool:
    """True if the view belongs to the second stage."""
    return all(catalog.table(name) is None for name in view.inputs)


def needed_views(catalog: Catalog) -> tuple[ViewDef, ...]:
    """The views that cells or the second stage maintain, in order of creation: user views, and views read by the second
    stage.

    A view that a cell view reads is copied into its cells under another name.
    """
    needed: set[str] = set()
    views = list(catalog.views.values())
    for view in reversed(views):
        if view.internal and view.name.lower() not in needed:
            continue
        needed.add(view.name.lower())
        if reads_views_alone(view, catalog):
            needed.update(name.lower() for name in view.inputs)
    return tuple(view for view in views if view.name.lower() in needed)


def closure(view: ViewDef, catalog: Catalog) -> tuple[ViewDef, ...]:
    """The view and all views that it reads, directly or not, in order of creation."""
    wanted = {view.name.lower()}
    for one in reversed(list(catalog.views.values())):
        if one.name.lower() in wanted:
            wanted.update(name.lower() for name in one.inputs)
    return tuple(one for one in catalog.views.values() if one.name.lower() in wanted)


def tables_read(view: ViewDef, catalog: Catalog) -> tuple[str, ...]:
    """Names of the tables that a view reads, directly or not."""
    names = (name for one in closure(view, catalog) for name in one.inputs)
    return tuple(dict.fromkeys(t.name for t in map(catalog.table, names) if t is not None))
