"""Binds UNION, EXCEPT and INTERSECT, which combine the rows of SELECTs.

UNION ALL reads all rows. UNION, EXCEPT and INTERSECT read each distinct row once. EXCEPT ALL and INTERSECT ALL read
each distinct row with the number of times that it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from freshviews.catalog.definitions import SetOperation, SetTerm, looked_up_blocks
from freshviews.expr.nodes import Column
from freshviews.query.block import Block
from freshviews.sql.blocks.bound import AggregateCall, Bound, Item, Select, distinct_over, group_index
from freshviews.sql.blocks.building.block_of_select import block_of
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import VOID, Fault, null
from freshviews.sql.expressions.cast import cast
from freshviews.sql.names.scope import Source
from freshviews.types import BIGINT, STRING, SqlType

ALL = "all"


def set_operation(kind: str, left: Bound, right: Bound, views: Views) -> Bound:
    """Combine two queries with the same number of columns; ``kind`` as in SetOperation.

    Raises Fault if columns have no common type.

    Every operation except UNION ALL looks up rows of its operands by their values. A SELECT DISTINCT below such an
    operation is unchanged. A join without grouping becomes SELECT DISTINCT, with COUNT(*) if EXCEPT ALL or INTERSECT
    ALL needs the number of copies. Any other SELECT, such as one with aggregates, becomes an internal view, whose
    distinct rows are read. So does a SELECT whose output lacks one of its free variables.

    A set operation without ALL reads distinct rows, so UNION ALL and INTERSECT ALL inside it are evaluated without ALL.
    """
    word = "UNION" if kind == ALL else kind.upper().replace("_", " ")
    types = [
        logic.common_type(both, f"column {number} of {word}")
        for number, both in enumerate(zip(left.columns, right.columns, strict=True), 1)
    ]
    if kind != ALL:
        types = [STRING if one == VOID else one for one in types]
    left, right = _cast(left, types, views), _cast(right, types, views)
    nullable = tuple(a.nullable or b.nullable for a, b in zip(left.columns, right.columns, strict=True))
    if kind == ALL and left.combined is None and right.combined is None:
        return Bound((*left.selects, *right.selects), None, nullable)
    combined = SetOperation(kind, _term(left, kind), _shifted(_term(right, kind), len(left.selects)))
    return Bound((*left.selects, *right.selects), combined, nullable)


def aligned(left: Bound, right: Bound, views: Views) -> tuple[Bound, Bound]:
    """The queries of UNION BY NAME with the same columns: those of the left one, then others of the right one. A column
    that a query lacks is NULL. Raises Fault if a query has a name twice."""
    known = {column.name.lower() for column in left.columns}
    names = [column.name for column in (*left.columns, *(c for c in right.columns if c.name.lower() not in known))]
    return _with_columns(left, names, views), _with_columns(right, names, views)


def _with_columns(bound: Bound, names: Sequence[str], views: Views) -> Bound:
    own = [column.name.lower() for column in bound.columns]
    twice = next((name for name in own if own.count(name) > 1), None)
    if twice is not None:
        raise Fault(f"UNION BY NAME: column {twice} is given twice; rename one of the columns with AS")
    places = [own.index(name.lower()) if name.lower() in own else None for name in names]

    def items(select: Select) -> tuple[Item, ...]:
        pairs = zip(names, places, strict=True)
        return tuple(Item(name, null(VOID) if place is None else select.items[place].expr) for name, place in pairs)

    selects = bound.selects
    if bound.combined is not None:
        whole = views.source_of(views.internal_view(uniquely_named(typed(bound, views))))
        selects = (everything(whole, bound),)
    return Bound(tuple(replace(one, items=items(one)) for one in selects))


def uniquely_named(bound: Bound) -> Bound:
    """Rename columns so that all names differ, as a relation requires."""
    names: dict[str, str] = {}
    for column in bound.columns:
        name, number = column.name, 2
        while name.lower() in names:
            name, number = f"{column.name}_{number}", number + 1
        names[name.lower()] = name

    def named(select: Select) -> Select:
        items = zip(select.items, names.values(), strict=True)
        return replace(select, items=tuple(replace(item, name=name) for item, name in items))

    return replace(bound, selects=tuple(map(named, bound.selects)))


def blocks_of(bound: Bound, views: Views) -> list[Block]:
    """The block of each SELECT. Below an operation other than UNION ALL, every row can be looked up by its values."""
    looked_up = looked_up_blocks(bound.combined) if bound.combined is not None else {}
    blocks = []
    for i, select in enumerate(bound.selects):
        counted = looked_up.get(i)
        made = select if counted is None else _distinct(select, views, counted)
        block = block_of(made, views)
        if counted is not None and not block.found_by_row:
            block = block_of(_of_internal_view(select, views, counted), views)
        blocks.append(block)
    return blocks


def _cast(bound: Bound, types: list[SqlType], views: Views) -> Bound:
    """Cast the query's columns to these types.

    A cast may make different rows equal, so the query's own set operations are evaluated before it.
    """
    if [c.type for c in bound.columns] == types:
        return bound
    if bound.combined is None:
        return Bound(tuple(_cast_items(select, types) for select in bound.selects))
    source = views.source_of(views.internal_view(uniquely_named(bound)))
    return Bound((_cast_items(everything(source, bound), types),))


def typed(bound: Bound, views: Views) -> Bound:
    """The query with a type for each column: STRING for a column of Spark's type VOID, which is always NULL."""
    return _cast(bound, [STRING if column.type == VOID else column.type for column in bound.columns], views)


def everything(source: Source, named: Bound) -> Select:
    """All rows of an internal view of a query, with the query's column names; columns of type VOID are NULL."""
    items = zip(named.columns, source.columns, strict=True)
    values = ((one.name, null(VOID) if one.type == VOID else source.column(column)) for one, column in items)
    return Select("bag", (source,), (), tuple(Item(name, value) for name, value in values))


def _cast_items(select: Select, types: list[SqlType]) -> Select:
    items = zip(select.items, types, strict=True)
    return replace(select, items=tuple(replace(item, expr=cast(item.expr, to)) for item, to in items))


def _distinct(select: Select, views: Views, counted: bool) -> Select:
    """The distinct rows of a SELECT; ``counted``: with the number of copies of each."""
    if select.kind == "bag":
        made = distinct_over(select)
        return replace(made, aggregates=(AggregateCall("count", (), False, BIGINT),)) if counted else made
    groups = {group_index(item.expr.name) for item in select.items if isinstance(item.expr, Column)}
    plain = select.kind == "groups" and not (select.aggregates or select.sets) and select.having is None
    if plain and groups.issuperset(range(len(select.groups))):
        return select
    return _of_internal_view(select, views, counted)


def _of_internal_view(select: Select, views: Views, counted: bool) -> Select:
    """The distinct rows of an internal view of a SELECT."""
    bound = Bound((select,))
    whole = everything(views.source_of(views.internal_view(uniquely_named(bound))), bound)
    return _distinct(whole, views, counted)


def _term(bound: Bound, kind: str) -> SetTerm:
    """The query's term, as an operand of an operation of this ``kind``."""
    below: SetTerm
    if bound.combined is not None:
        below = bound.combined
    else:
        below = 0
        for i in range(1, len(bound.selects)):
            below = SetOperation(ALL, below, i)
    return _of_sets(below) if kind in ("union", "except", "intersect") else below


def _of_sets(term: SetTerm) -> SetTerm:
    """The term if only its distinct rows matter."""
    if isinstance(term, int) or term.kind not in (ALL, "intersect_all"):
        return term  # Operations below an operation on sets are on sets already.
    return SetOperation("union" if term.kind == ALL else "intersect", _of_sets(term.left), _of_sets(term.right))


def _shifted(term: SetTerm, by: int) -> SetTerm:
    if isinstance(term, int):
        return term + by
    return SetOperation(term.kind, _shifted(term.left, by), _shifted(term.right, by))
