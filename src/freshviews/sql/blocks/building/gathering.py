"""Computes STRING_AGG, similar aggregates, and users' aggregates of plain Python in internal views.

Each of these has its own view. All aggregates such as SUM share one view. A join combines the views::

    SELECT k, SUM(x), STRING_AGG(y, ', ') FROM t GROUP BY k

    v#1(k, c1)       SELECT k, SUM(x) FROM t GROUP BY k
    v#2(k, text)     for each k of t, one text of its values y
    v(k, c1, text)   SELECT v#1.k, v#1.c1, v#2.text FROM v#1 JOIN v#2 ON v#1.k = v#2.k
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from freshviews.catalog.definitions import ColumnDef
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.ops import may_fail
from freshviews.expr.printer import print_expression
from freshviews.query.block import SET, Block, Fold, Gathering
from freshviews.sql.blocks.bound import AggregateCall, Bound, Item, OptionalSource, Select, aggregate_ref, group_ref
from freshviews.sql.blocks.optional import equality
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, key, null, refined, rejects_null, replaced
from freshviews.sql.names.scope import Source, name_of
from freshviews.types import BIGINT, BOOLEAN


def over_texts(select: Select, views: Views, block_of: Callable[[Select], Block]) -> Select:
    """The grouped SELECT as a join of views of its aggregates, each by group. ``block_of`` makes the block of a bag.

    With several grouping sets, each set has a view of texts, and one more internal view is their union. A row of the
    union has the number of its set, and NULL in the columns that the set does not group by.

    If the ``Gathering`` of an aggregate is ``listed``, its text lists groups instead of rows. One more internal view
    has these groups::

        SELECT k, COFACTOR(x, CATEGORY(c), CATEGORY(d)) FROM t GROUP BY k

        v#2(k, set, c, d, n, s)     SELECT k, the number of the set, c, d, COUNT(*), SUM(x) FROM t
                                    WHERE x IS NOT NULL AND c IS NOT NULL AND d IS NOT NULL
                                    GROUP BY GROUPING SETS ((k, c), (k, d), (k, c, d))
        v#3(k, text, text1, ...)    the texts of v#2, by k
    """
    grouped = select.kind == "groups"
    refs = _keys(select)
    sources: list[Source] = []
    made: dict[object, Source] = {}
    lacking: set[str] = set()
    to: dict[str, Expr] = {}
    others = [(i, one) for i, one in enumerate(select.aggregates) if one.gathering is None]
    if others or select.sets:
        # With grouping sets this view has the existing rows, also if only texts are selected.
        counts = [] if others else [AggregateCall("count", (), False, BIGINT)]
        numbered = [aggregate_ref(i, one, grouped) for i, (_, one) in enumerate(others)]
        items = tuple(Item(f"c{i}", ref) for i, ref in enumerate([*refs, *numbered], 1))
        inner = replace(select, items=items, aggregates=(*(one for _, one in others), *counts), having=None)
        sources.append(replace(views.source_of(views.internal_view(Bound((inner,)))), alias="grouped"))
        for (i, one), column in zip(others, sources[-1].columns[len(refs) :], strict=True):
            to[aggregate_ref(i, one, grouped).name] = sources[-1].column(column)
    for i, one in enumerate(select.aggregates):
        if one.gathering is None:
            continue
        rows = (one.gathering, *map(key, one.args))
        ref = aggregate_ref(i, one, grouped)
        if rows not in made:
            of_set = _of_sets if select.sets else _texts
            made[rows] = of_set(select, one, views, block_of, f"texts{i}")
            sources.append(made[rows])
            if grouped and one.gathering.listed and ref.nullable:
                lacking.add(made[rows].alias)
        (number,) = one.entry or (0,)
        text = made[rows].column(made[rows].columns[len(refs) + number])
        to[ref.name] = replace(text, nullable=text.nullable or made[rows].alias in lacking)
    keys = [[one.column(column) for column in one.columns[: len(refs)]] for one in sources]
    to |= {ref.name: column for ref, column in zip(refs, keys[0], strict=True)}

    def over(expr: Expr) -> Expr:
        return replaced(expr, lambda part: to.get(part.name) if isinstance(part, Column) else None)

    conjuncts: list[Expr] = []
    optional: list[OptionalSource] = []
    for source, columns in zip(sources[1:], keys[1:], strict=True):
        equal = tuple(map(equality, columns, keys[0]))
        if source.alias in lacking:
            optional.append(OptionalSource(source.alias, equal))
        else:
            conjuncts += equal
    conjuncts += () if select.having is None else logic.conjuncts_of(over(select.having))
    listed = tuple(replace(item, expr=over(item.expr)) for item in select.items)
    return Select("bag", tuple(sources), tuple(conjuncts), listed, optional=tuple(optional))


def _rows(select: Select, aggregate: AggregateCall, views: Views) -> Select:
    """The rows whose texts an aggregate joins: the columns of the group, and the arguments."""
    assert aggregate.gathering is not None
    if aggregate.gathering.listed:
        return _relations(select, aggregate, aggregate.gathering, views)
    groups = (Item(f"g{i}", group.expr) for i, group in enumerate(select.groups, 1))
    arguments = (Item(f"a{i}", arg) for i, arg in enumerate(aggregate.args, 1))
    # The rows of frames are found in the order of the groups.
    kept = () if select.limit is None else select.groups
    return replace(select, kind="bag", items=(*groups, *arguments), groups=kept, aggregates=(), having=None)


def _relations(select: Select, aggregate: AggregateCall, gathering: Gathering, views: Views) -> Select:
    """The rows of relations: the groups of an internal view."""
    known = list(map(_without_null, aggregate.args))
    tests = [test for _, found in known for test in found]
    never_null = frozenset[str]().union(*map(rejects_null, tests))
    values = [refined(value, never_null) for value, _ in known]
    # The number of the relation and the keys of all relations come before the count.
    count, own = gathering.listed[0][1][-1], {number: places[:-1] for number, places in gathering.listed}
    keys, summed = values[: count - 1], values[count - 1 :]
    groups = (*(group.expr for group in select.groups), *keys)
    outer = len(select.groups)
    types = [column.type for column in gathering.columns[count:]]
    calls = [AggregateCall("count", (), False, BIGINT)]
    calls += [AggregateCall("sum", (value,), False, of) for value, of in zip(summed, types[1:], strict=True)]
    refs = [replace(group_ref(i, expr), nullable=expr.nullable or i >= outer) for i, expr in enumerate(groups)]
    refs[outer:outer] = [Column(SET, BIGINT, False)]
    refs += [aggregate_ref(i, one, True) for i, one in enumerate(calls)]
    inner = replace(
        select,
        kind="groups",
        conjuncts=(*select.conjuncts, *tests),
        items=tuple(Item(f"c{i}", ref) for i, ref in enumerate(refs, 1)),
        groups=tuple(Item(f"g{i}", expr) for i, expr in enumerate(groups, 1)),
        aggregates=tuple(calls),
        having=None,
        sets=tuple((*range(outer), *(outer + place - 1 for place in places)) for places in own.values()),
    )
    source = views.shared_source(inner)
    return Select("bag", (source,), (), tuple(Item(one.name, source.column(one)) for one in source.columns))


def _without_null(arg: Expr) -> tuple[Expr, tuple[Expr, ...]]:
    """An argument in the rows where it is not NULL, and the predicates of these rows.

    The value of a CASE with one branch, as of FILTER, is taken out of it if it cannot fail in other rows. So tests and
    values of different sources stay apart.
    """
    if isinstance(arg, Call) and arg.op == "case" and len(arg.args) == 3:
        test, then, otherwise = arg.args
        if isinstance(otherwise, Literal) and otherwise.value is None and not may_fail(then):
            value, tests = _without_null(then)
            return value, (*logic.conjuncts_of(test), *tests)
    return arg, (call("is_not_null", (arg,), BOOLEAN),) if arg.nullable else ()


def _keys(select: Select) -> list[Column]:
    """The columns that identify a row of a grouped SELECT: its groups, and the number of its grouping set."""
    lacking = {i for one in select.sets for i in range(len(select.groups)) if i not in one}
    refs = [group_ref(i, group.expr) for i, group in enumerate(select.groups)]
    refs = [replace(ref, nullable=ref.nullable or i in lacking) for i, ref in enumerate(refs)]
    return [*refs, *([Column(SET, BIGINT, False)] if select.sets else [])]


def _of_sets(
    select: Select, aggregate: AggregateCall, views: Views, block_of: Callable[[Select], Block], alias: str
) -> Source:
    """An internal view of the texts of all grouping sets."""
    assert aggregate.gathering is not None
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
        items.append(Item("grouping", Literal(number, BIGINT)))
        items += (Item(one.name, texts.column(one)) for one in texts.columns[-aggregate.gathering.texts :])
        selects.append(Select("bag", (texts,), (), tuple(items)))
    return replace(views.source_of(views.internal_view(Bound(tuple(selects)))), alias=alias)


def _texts(
    select: Select, aggregate: AggregateCall, views: Views, block_of: Callable[[Select], Block], alias: str
) -> Source:
    """An internal view of the texts by group."""
    assert aggregate.gathering is not None
    rows = block_of(_rows(select, aggregate, views))
    whole = select.kind == "global"
    made = replace(aggregate.gathering, groups=len(select.groups), whole=whole)
    if isinstance(made, Fold):
        # Rows of negative multiplicity are passed over, so a row that goes may never have been added.
        sources = (*select.sources, *(one.source for one in select.absent))
        removes = made.removes and not any(map(views.reads_trusted, sources))
        of_groups = [one.expr for one in select.groups]
        names, types = tuple(map(_shown, of_groups)), tuple(one.type for one in of_groups)
        made = replace(made, removes=removes, names=names, types=types)
    nullable = aggregate_ref(0, aggregate, not whole).nullable
    groups = (ColumnDef(f"g{i}", one.expr.type, one.expr.nullable) for i, one in enumerate(select.groups, 1))
    texts = (ColumnDef(f"text{i or ''}", aggregate.type, nullable) for i in range(made.texts))
    columns = (*groups, *texts)
    return replace(views.source_of(views.view_of(columns, (replace(rows, gathering=made),))), alias=alias)


def _shown(group: Expr) -> str:
    """An expression of GROUP BY, for messages."""
    named = replaced(group, lambda part: replace(part, name=name_of(part.name)) if isinstance(part, Column) else None)
    return print_expression(named)
