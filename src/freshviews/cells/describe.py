"""Describes a plan of cells as plain text, which ``freshviews explain --cells N`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.watermark import PROPERTY as WATERMARK
from freshviews.catalog.window import PROPERTY as WINDOW
from freshviews.cells.cell_plan import CellPlan, Part, Role
from freshviews.cells.expected import rows_per_cell, rows_taken, sizes_of
from freshviews.cells.needed import needed_views
from freshviews.cells.splitting import table_named
from freshviews.cells.windows import windowed_tables

MOST_VALUES = 5
"""Limit on the heavy values that are printed."""


def describe(plan: CellPlan, catalog: Catalog, sizes: Mapping[str, float]) -> str:
    """Return a plain-text description of a plan.

    Per view: its shares, the roles it reads, and whether its groups are merged. Per role: how its table is split and
    copied. Per foreign key: where it is checked. Per cell: the expected rows. Tables with a window or a watermark.
    """
    known = sizes_of(catalog, sizes)
    sections = [_counted(plan.cells, "cell"), _views(plan, catalog), _tables(plan, known), _loads(plan, known)]
    if plan.links:
        sections.insert(3, _links(plan, catalog))
    if plan.heavy:
        sections.append(_heavy(plan))
    before = windowed_tables(plan, catalog)
    for what, property_ in (("windows", WINDOW), ("watermarks", WATERMARK)):
        tables = [name for name in before if property_ in dict(table_named(catalog, name).properties)]
        if tables:
            sections.append(f"{what} of {', '.join(tables)}: maintained by one engine in front of the cells")
    return "\n\n".join(sections) + "\n"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _views(plan: CellPlan, catalog: Catalog) -> str:
    lines = [("view", "shares", "cells", "reads", "result")]
    for view in needed_views(catalog):
        parts = plan.parts_of(view.name)
        for part in parts:
            branch = f", branch {part.block + 1}" if len(view.blocks) > 1 else ""
            lines.append((view.name + branch, _shares(part), str(part.span), _reads(part), _result(part, parts)))
        if not parts and plan.cells > 1:
            lines.append((view.name, "", "", ", ".join(view.inputs), "second stage"))
        elif not parts:
            lines.append((view.name, "", "1", ", ".join(view.inputs), "whole"))
    return _table(lines)


def _shares(part: Part) -> str:
    words = [f"{label} {share}" for label, share in part.shares] or ["none"]
    words += [f"{variable} {'heavy' if inside else 'light'}" for variable, inside in part.heavy]
    return ", ".join(words)


def _reads(part: Part) -> str:
    copies = {copy.name: copy.view for copy in part.copies}
    words = []
    for atom, name in part.reads:
        relation = copies.get(name, name)
        role = f"copy of {relation}" if name in copies else name
        words.append(role if relation.lower() == atom.lower() else f"{role} as {atom}")
    inner = sorted(part.roles - {name for _, name in part.reads})
    return ", ".join(words) + (f"; by copies {', '.join(inner)}" if inner else "")


def _result(part: Part, parts: Sequence[Part]) -> str:
    if part.merged:
        return "merged"
    if any(one.merged for one in parts):
        return "passed on to the merge"
    return "union of cells" if part.span > 1 else f"in cell {part.offset}"


def _tables(plan: CellPlan, sizes: Mapping[str, float]) -> str:
    lines = [("table", "rows", "role", "split by", "copies", "rows per cell")]
    for role in plan.roles:
        rows = rows_taken(role.table, role.heavy, sizes, plan.heavy)
        per_cell = rows_per_cell(role, sizes, plan.heavy)
        lines.append((role.table, f"{rows:,.0f}", role.name, _split(role), str(role.copies), f"{per_cell:,.0f}"))
    for table in dict.fromkeys(role.table for role in plan.roles):
        roles = plan.roles_of(table)
        sent = sum(rows_taken(table, r.heavy, sizes, plan.heavy) * r.copies for r in roles)
        if len(roles) > 1 and sizes[table]:
            lines.append((table, f"{sizes[table]:,.0f}", "all", "", f"{sent / sizes[table]:.3g}", ""))
    return _table(lines, right=(1, 4, 5))


def _split(role: Role) -> str:
    words = [f"{dim.column} {dim.share}" for dim in role.dims if dim.column is not None]
    words += [f"{one.column} {'heavy' if one.inside else 'light'}" for one in role.heavy]
    return ", ".join(words) or ("to all of " + _counted(role.span, "cell") if role.dims else f"to cell {role.offset}")


def _links(plan: CellPlan, catalog: Catalog) -> str:
    lines = [("foreign key", "checked in", "refers to rows of")]
    for link in plan.links:
        table = table_named(catalog, plan.role(link.child).table)
        key = table.foreign_keys[link.key]
        lines.append((f"{table.name} ({', '.join(key.columns)}) REFERENCES {key.table}", link.child, link.parent))
    return _table(lines)


def _loads(plan: CellPlan, sizes: Mapping[str, float]) -> str:
    loads = [0.0] * plan.cells
    for role in plan.roles:
        for cell in role.reached:
            loads[cell] += rows_per_cell(role, sizes, plan.heavy)
    mean = sum(loads) / len(loads)
    return f"rows expected in a cell: mean {mean:,.0f}, largest {max(loads):,.0f}"


def _heavy(plan: CellPlan) -> str:
    lines = [("heavy values of", "rows", "values")]
    for one in plan.heavy:
        values = ", ".join(map(str, one.values[:MOST_VALUES]))
        more = len(one.values) - MOST_VALUES
        text = values + (f" and {more:,} more" if more > 0 else "")
        lines.append((f"{one.table}.{one.column}", f"{sum(one.rows):,.0f}", text))
    return _table(lines, right=(1,))


def _table(lines: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Lay out rows of text in aligned columns."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    places = set(right)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in places else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
