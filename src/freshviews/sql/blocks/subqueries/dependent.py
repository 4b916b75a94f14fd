"""Dependent queries, as queries that depend on nothing.

A query depends on another one where it names columns of it. It then has rows for each value of these columns. Where
the names stand in equalities, the other sides of these become columns of the query. Else the query is joined with the
distinct values of the columns, its *domain*, and groups by them as well. An aggregate without GROUP BY has a row for
each value of the domain, whether there are rows or not::

    SELECT COUNT(*) AS n FROM i WHERE i.k < o.k
    SELECT d.k, COALESCE(q.n, 0) AS n
    FROM d LEFT JOIN (SELECT d.k, COUNT(*) AS n FROM d JOIN i ON i.k < d.k GROUP BY d.k) q ON q.k = d.k

The domain may have more values than the rows of the enclosing query: nothing looks these up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.sql.blocks.bound import (
    Bound,
    Item,
    OptionalSource,
    Select,
    aggregate_index,
    aggregate_ref,
    group_ref,
)
from freshviews.sql.blocks.enclosing import Names
from freshviews.sql.blocks.joins.tree import FullJoin, Joined, LeftJoin, free_alias
from freshviews.sql.blocks.optional import EQUALITIES, equality
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, integer, key, nodes_of, replaced
from freshviews.sql.names.marks import OUTER, is_marked, marks, unmarked
from freshviews.sql.names.scope import Source
from freshviews.types import BOOLEAN


def marked_columns(exprs: Iterable[Expr]) -> dict[str, Column]:
    """The marked columns in expressions, by name."""
    return {n.name: n for expr in exprs for n in nodes_of(expr) if isinstance(n, Column) and is_marked(n)}


def depends(bound: Bound) -> bool:
    """True if a query names a column of a query around."""
    return any(is_marked(expr) for select in bound.selects for expr in select.exprs)


@dataclass(frozen=True)
class Domain:
    """Sources with the values of marked columns; ``to``: by the name of each, the column of a source."""

    sources: tuple[Source, ...]
    to: Mapping[str, Column]

    def over(self, expr: Expr) -> Expr:
        """The expression over the domain's columns instead of marked ones."""
        return replaced(expr, lambda part: self.to.get(part.name) if isinstance(part, Column) else None)


def domain_of(columns: Mapping[str, Column], names: Names, views: Views, taken: Iterable[str]) -> Domain:
    """The domain of marked columns: a source for each of the enclosing queries that they are of."""
    around: Names | None = names
    left = dict(columns)
    sources: list[Source] = []
    to: dict[str, Column] = {}
    depth = 1
    while left:
        assert around is not None
        here = [name for name in left if not name.startswith(OUTER * (depth + 1))]
        if here:
            own = tuple(_freed(left.pop(name), depth) for name in here)
            made = views.domain_source(around.domain(own))
            source = replace(made, alias=free_alias("around", [*taken, *(s.alias for s in sources)]))
            sources.append(source)
            to.update((name, source.column(c)) for name, c in zip(here, source.columns, strict=True))
        around, depth = around.around, depth + 1
    return Domain(tuple(sources), to)


def as_bag(bound: Bound, names: Names, views: Views, forced: bool = False) -> Select:
    """The rows of a query that depends on others, as those of one internal view with predicates that tie it to a row of
    each.

    ``forced``: columns of the list are computed inside the view.
    """
    keys, made = _independent(bound, names, views, forced)
    source = views.source_of(views.internal_view(uniquely_named(made)))
    own = [source.column(column) for column in source.columns]
    conjuncts = tuple(replace(one, args=(column, one.args[1])) for one, column in zip(keys, own, strict=False))
    listed = zip(bound.columns, own[len(keys) :], strict=True)
    return Select("bag", (source,), conjuncts, tuple(Item(c.name, column) for c, column in listed))


def beside(bound: Bound, names: Names, views: Views) -> Select | None:
    """An aggregate without GROUP BY beside each row of the query that it depends on: an optional source with the
    aggregates of the rows that match, and the list over them. None for another query."""
    (select, *more) = bound.selects
    if more or select.kind != "global":
        return None
    rows = replace(select, kind="groups", items=_aggregates(select), having=None)
    keys, made = _independent(Bound((rows,)), names, views, False)
    source = views.source_of(views.internal_view(uniquely_named(made)))
    own = [source.column(column) for column in source.columns]
    on = tuple(replace(one, args=(column, one.args[1])) for one, column in zip(keys, own, strict=False))
    having, items = _over_aggregates(select, own[len(keys) :])
    return Select("bag", (source,), having, items, optional=(OptionalSource(source.alias, on),))


def _independent(bound: Bound, names: Names, views: Views, forced: bool) -> tuple[list[Call], Bound]:
    """The query with key columns in front, and for each of them an equality with the marked expression that it has the
    value of."""
    select = bound.selects[0]
    if len(bound.selects) == 1 and select.kind != "global" and not forced:
        keys = [_key(one) for one in select.conjuncts if is_marked(one)]
        apart = replace(select, conjuncts=tuple(one for one in select.conjuncts if not is_marked(one)))
        found = [one for one in keys if one is not None]
        if len(found) == len(keys) and not any(map(is_marked, apart.exprs)):
            known = [
                call("is_not_null", (one.args[0],), BOOLEAN)
                for one in found
                if one.op != "null_safe_eq" and one.args[0].nullable
            ]
            apart = replace(apart, conjuncts=(*apart.conjuncts, *known))
            return found, Bound((_keyed(apart, [one.args[0] for one in found]),))
    columns = marked_columns(expr for one in bound.selects for expr in one.exprs)
    taken = [s.alias for one in bound.selects for s in (*one.sources, *(absent.source for absent in one.absent))]
    domain = domain_of(columns, names, views, taken)
    selects = tuple(_over_domain(one, domain, views) for one in bound.selects)
    return [equality(domain.to[name], columns[name]) for name in columns], replace(bound, selects=selects)


def _key(conjunct: Expr) -> Call | None:
    """An equality of an expression of the query with one of marked columns, in this order."""
    if isinstance(conjunct, Call) and conjunct.op in EQUALITIES:
        for own, other in (conjunct.args, conjunct.args[::-1]):
            if not is_marked(own) and marks(other) == columns_of(other):
                return replace(conjunct, args=(own, other))
    return None


def _over_domain(select: Select, domain: Domain, views: Views) -> Select:
    if not domain.sources:
        return select
    made = select.mapped(domain.over)
    keys = [*domain.to.values()]
    if select.kind == "global":
        return _each_value(made, domain, views)
    return _keyed(replace(made, sources=(*domain.sources, *made.sources)), keys)


def _keyed(select: Select, keys: Sequence[Expr]) -> Select:
    """A bag or groups with further columns in front, by which groups are grouped, too."""
    if select.kind == "bag":
        return replace(select, items=(*_items(keys), *select.items))
    groups = [*select.groups]
    places: list[int] = []
    for expr in keys:
        known = [i for i, group in enumerate(groups) if key(group.expr) == key(expr) and not select.sets]
        places.append(known[0] if known else len(groups))
        if not known:
            groups.append(Item(f"around_{len(groups) + 1}", expr))
    refs = [group_ref(place, expr) for place, expr in zip(places, keys, strict=True)]
    to = {key(expr): ref for expr, ref in zip(keys, refs, strict=True)}

    def over(expr: Expr) -> Expr:
        return replaced(expr, lambda part: to.get(key(part)))

    return replace(
        select,
        groups=tuple(groups),
        items=(*_items(refs), *(replace(item, expr=over(item.expr)) for item in select.items)),
        having=None if select.having is None else over(select.having),
        sets=tuple(tuple(sorted({*one, *places})) for one in select.sets),
    )


def _each_value(select: Select, domain: Domain, views: Views) -> Select:
    """An aggregate without GROUP BY for each value of the domain."""
    keys = [*domain.to.values()]
    sources = (*domain.sources, *select.sources)
    rows = replace(select, kind="groups", sources=sources, items=_aggregates(select), having=None)
    grouped = _keyed(rows, keys)
    made = views.source_of(views.internal_view(uniquely_named(Bound((grouped,)))))
    source = replace(made, alias=free_alias("grouped", [s.alias for s in domain.sources]))
    own = [source.column(column) for column in source.columns]
    on = tuple(equality(column, value) for column, value in zip(own, keys, strict=False))
    having, items = _over_aggregates(select, own[len(keys) :])
    optional = (OptionalSource(source.alias, on),)
    return Select("bag", (*domain.sources, source), having, (*_items(keys), *items), optional=optional)


def _aggregates(select: Select) -> tuple[Item, ...]:
    """The aggregates of a SELECT as its list."""
    return tuple(Item(f"a{i}", aggregate_ref(i - 1, one, False)) for i, one in enumerate(select.aggregates, 1))


def _over_aggregates(select: Select, found: Sequence[Column]) -> tuple[tuple[Expr, ...], tuple[Item, ...]]:
    """HAVING and the list of a SELECT over columns with its aggregates, all NULL where there are no rows."""

    def value(part: Expr) -> Expr | None:
        index = aggregate_index(part.name) if isinstance(part, Column) else None
        if index is None:
            return None
        column = replace(found[index], nullable=True)
        return logic.first_of((column, integer(0))) if select.aggregates[index].function == "count" else column

    having = () if select.having is None else logic.conjuncts_of(replaced(select.having, value))
    return having, tuple(Item(item.name, replaced(item.expr, value)) for item in select.items)


def _items(exprs: Sequence[Expr]) -> list[Item]:
    return [Item(f"around_{i}", expr) for i, expr in enumerate(exprs, 1)]


def _freed(column: Column, depth: int) -> Expr:
    made: Expr = column
    for _ in range(depth):
        made = unmarked(made)
    return made


def _freed_sides(joined: Joined, names: Names, views: Views) -> Joined:
    """The join whose outer joins name columns of enclosing queries in ON only."""
    left: list[LeftJoin] = []
    for one in joined.left:
        right = tied(one.right, names, views)
        around = tuple(term for term in right.conjuncts if is_marked(term))
        own = tuple(term for term in right.conjuncts if not is_marked(term))
        left.append(LeftJoin(replace(right, conjuncts=own), (*one.on, *around)))
    return replace(joined, left=tuple(left))


def _freed_full(joined: Joined, names: Names, views: Views) -> Joined:
    """The join whose FULL JOINs name no columns of enclosing queries: each side has a domain of its own, and the values
    of the side that is there tie a row to the enclosing query."""
    full: list[FullJoin] = []
    ties: list[Expr] = []
    taken = sorted(joined.aliases)
    for one in joined.full:
        left, right = (tied(side, names, views) for side in (one.left, one.right))
        taken += sorted(left.aliases | right.aliases)
        columns = marked_columns((*one.on, *left.conjuncts, *right.conjuncts))
        own = domain_of(columns, names, views, taken)
        other = domain_of(columns, names, views, [*taken, *(source.alias for source in own.sources)])
        taken += [source.alias for source in (*own.sources, *other.sources)]
        left, right = _beside_domain(left, own), _beside_domain(right, other)
        both = tuple(equality(own.to[name], other.to[name]) for name in columns)
        full.append(FullJoin(left, right, (*map(own.over, one.on), *both)))
        for name, column in columns.items():
            there = logic.first_of([replace(domain.to[name], nullable=True) for domain in (own, other)])
            ties.append(equality(there, column))
    return replace(joined, full=tuple(full), conjuncts=(*joined.conjuncts, *ties))


def _beside_domain(side: Joined, domain: Domain) -> Joined:
    conjuncts = tuple(map(domain.over, side.conjuncts))
    return replace(side, sources=(*side.sources, *domain.sources), conjuncts=conjuncts)


def tied(joined: Joined, names: Names, views: Views) -> Joined:
    """The join where no outer join names columns of enclosing queries: a domain beside the other sources has these."""
    freed = _freed_full(_freed_sides(joined, names, views), names, views)
    columns = marked_columns(expr for one in freed.left for expr in one.on)
    if not columns:
        return freed
    domain = domain_of(columns, names, views, sorted(freed.aliases))
    equal = tuple(equality(domain.to[name], column) for name, column in columns.items())
    left = tuple(replace(one, on=tuple(map(domain.over, one.on))) for one in freed.left)
    return replace(
        freed, sources=(*freed.sources, *domain.sources), conjuncts=(*freed.conjuncts, *equal), left=left
    )
