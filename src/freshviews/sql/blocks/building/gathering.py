"""Texts of all rows of a group, as internal views.

For each aggregate with a ``Gathering`` there is an internal view of its texts by group. The SELECT joins these views
with a view of its other aggregates::

    SELECT k, SUM(x), STRING_AGG(y, ', ') FROM t GROUP BY k

    v#1(k, c1)       SELECT k, SUM(x) FROM t GROUP BY k
    v#2(k, text)     the texts of SELECT k, y FROM t, by k
    v(k, c1, text)   SELECT v#1.k, v#1.c1, v#2.text FROM v#1 JOIN v#2 ON v#1.k = v#2.k

Of several grouping sets there is a view of texts by the groups of each set. Their rows together, with the number of the
set and NULL for the groups that it lacks, are one more internal view, which is joined by these columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.catalog.definitions import ColumnDef
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import SET, Block
from freshviews.sql.blocks.bound import AggregateCall, Bound, Item, Select, aggregate_ref, group_ref
from freshviews.sql.blocks.optional import equality
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import null, replaced
from freshviews.sql.names.scope import Source
from freshviews.types import BIGINT


def over_texts(select: Select, views: Views, block_of: Callable[[Select], Block]) -> Select:
    """The grouped SELECT as a join of views of its aggregates, each by group. ``block_of`` makes the block of a bag."""
    grouped = select.kind == "groups"
    refs = _keys(select)
    sources: list[Source] = []
    to: dict[str, Expr] = {}
    others = [(i, one) for i, one in enumerate(select.aggregates) if one.gathering is None]
    if others or select.sets:
        # Of grouping sets it has the rows that there are, also where only texts are selected.
        counts = [] if others else [AggregateCall("count", (), False, BIGINT)]
        numbered = [aggregate_ref(i, one, grouped) for i, (_, one) in enumerate(others)]
        items = tuple(Item(f"c{i}", ref) for i, ref in enumerate([*refs, *numbered], 1))
        inner = replace(select, items=items, aggregates=(*(one for _, one in others), *counts), having=None)
        sources.append(replace(views.source_of(views.internal_view(Bound((inner,)))), alias="grouped"))
        for (i, one), column in zip(others, sources[-1].columns[len(refs) :], strict=True):
            to[aggregate_ref(i, one, grouped).name] = sources[-1].column(column)
    for i, one in enumerate(select.aggregates):
        if one.gathering is not None:
            of_set = _of_sets if select.sets else _texts
            sources.append(of_set(select, one, views, block_of, f"texts{i}"))
            to[aggregate_ref(i, one, grouped).name] = sources[-1].column(sources[-1].columns[-1])
    keys = [[one.column(column) for column in one.columns[: len(refs)]] for one in sources]
    to |= {ref.name: column for ref, column in zip(refs, keys[0], strict=True)}

    def over(expr: Expr) -> Expr:
        return replaced(expr, lambda part: to.get(part.name) if isinstance(part, Column) else None)

    conjuncts: list[Expr] = []
    for columns in keys[1:]:
        conjuncts += map(equality, columns, keys[0])
    conjuncts += () if select.having is None else logic.conjuncts_of(over(select.having))
    listed = tuple(replace(item, expr=over(item.expr)) for item in select.items)
    return Select("bag", tuple(sources), tuple(conjuncts), listed)


def _rows(select: Select, aggregate: AggregateCall) -> Select:
    """The rows that the texts of an aggregate are made of: the columns of the group, and the arguments."""
    groups = (Item(f"g{i}", group.expr) for i, group in enumerate(select.groups, 1))
    arguments = (Item(f"a{i}", arg) for i, arg in enumerate(aggregate.args, 1))
    return replace(select, kind="bag", items=(*groups, *arguments), groups=(), aggregates=(), having=None)


def _keys(select: Select) -> list[Column]:
    """What a row of a grouped SELECT is known by: its groups, and the number of its grouping set."""
    lacking = {i for one in select.sets for i in range(len(select.groups)) if i not in one}
    refs = [group_ref(i, group.expr) for i, group in enumerate(select.groups)]
    refs = [replace(ref, nullable=ref.nullable or i in lacking) for i, ref in enumerate(refs)]
    return [*refs, *([Column(SET, BIGINT, False)] if select.sets else [])]


def _of_sets(
    select: Select, aggregate: AggregateCall, views: Views, block_of: Callable[[Select], Block], alias: str
) -> Source:
    """An internal view of the texts of all grouping sets."""
    selects = []
    for number, groups in enumerate(select.sets):
        own = tuple(select.groups[i] for i in groups)
        one = replace(select, kind="groups" if own else "global", groups=own, sets=())
        texts = _texts(one, aggregate, views, block_of, "texts")
        columns = dict(zip(groups, texts.columns, strict=False))
        items = [
            Item(f"g{i}", texts.column(columns[i - 1]) if i - 1 in columns else null(group.expr.type))
            for i, group in enumerate(select.groups, 1)
        ]
        items += [Item("grouping", Literal(number, BIGINT)), Item("text", texts.column(texts.columns[-1]))]
        selects.append(Select("bag", (texts,), (), tuple(items)))
    return replace(views.source_of(views.internal_view(Bound(tuple(selects)))), alias=alias)


def _texts(
    select: Select, aggregate: AggregateCall, views: Views, block_of: Callable[[Select], Block], alias: str
) -> Source:
    """An internal view of the texts by group."""
    assert aggregate.gathering is not None
    rows = block_of(_rows(select, aggregate))
    whole = select.kind == "global"
    made = replace(aggregate.gathering, groups=len(select.groups), whole=whole)
    nullable = aggregate_ref(0, aggregate, not whole).nullable
    groups = (ColumnDef(f"g{i}", one.expr.type, one.expr.nullable) for i, one in enumerate(select.groups, 1))
    columns = (*groups, ColumnDef("text", aggregate.type, nullable))
    return replace(views.source_of(views.view_of(columns, (replace(rows, gathering=made),))), alias=alias)
