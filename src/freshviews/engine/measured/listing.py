"""Lists the tables and views of a database, and the relations that each view reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from freshviews.display.graph import Node, svg
from freshviews.display.grid import Grid, bytes_text, rows_text
from freshviews.engine.backfill import ROWS
from freshviews.engine.relations import Relation, Relations, size_of
from freshviews.errors import EvaluationError

COUNTED = 64 << 20
"""Most bytes of a relation whose rows are counted to be shown; counting reads them."""
_MOST_DRAWN = 40
"""Most relations of a drawing."""


def listing(caption: str, relations: Relations, strings: int) -> Grid:
    """A grid of the tables and views, their memory, and what each reads. ``strings``: the bytes of strings."""
    everything: list[Relation] = [*relations.tables.values(), *relations.views.values()]
    total = strings + sum(map(size_of, everything))
    names = ("name", "kind", "rows", "memory", "reads")
    rows = [*_tables(relations), *_views(relations)]
    return Grid(f"{caption}: {bytes_text(total)}", names if rows else (), (), rows)


def _tables(relations: Relations) -> Iterator[tuple[str, ...]]:
    for table in relations.tables.values():
        yield table.name, "table", _rows(table), bytes_text(size_of(table)), ""


def _views(relations: Relations) -> Iterator[tuple[str, ...]]:
    for view in relations.views.values():
        if not view.definition.internal:
            own = f"{view.name.lower()}#"
            inner = [one for name, one in relations.views.items() if name.startswith(own)]
            memory = bytes_text(sum(map(size_of, [view, *inner])))
            yield view.name, "view", _rows(view), memory, ", ".join(_read(relations, view.maintained.inputs))
    for plain in relations.plain.values():
        yield plain.name, "plain view", "", "", ", ".join(plain.inputs)


def _rows(relation: Relation) -> str:
    """The number of rows, empty if counting them takes long or fails."""
    if not relation.is_stored:
        return rows_text(None)
    if size_of(relation) > COUNTED:
        return ""
    try:
        return rows_text(sum(int(batch.multiplicities.sum()) for batch in relation.batches(ROWS)))
    except EvaluationError:
        return ""


def _read(relations: Relations, inputs: Iterable[str]) -> tuple[str, ...]:
    """The tables and views that a view reads, itself or by its internal views."""
    found: dict[str, None] = {}
    for name in inputs:
        view = relations.views.get(name.lower())
        is_inner = view is not None and view.definition.internal
        found |= dict.fromkeys(_read(relations, view.maintained.inputs) if view is not None and is_inner else (name,))
    return tuple(found)


def drawing_of(relations: Relations) -> str:
    """The drawing of what reads what, as SVG; empty if there is nothing to draw, or too much."""
    nodes = [Node(table.name) for table in relations.tables.values()]
    for view in relations.views.values():
        if not view.definition.internal:
            inputs = _read(relations, view.maintained.inputs)
            nodes.append(Node(view.name, (", ".join(view.maintained.strategies),), inputs))
    return svg(nodes) if 0 < len(nodes) <= _MOST_DRAWN else ""
