"""Rewrites a query that names columns of an enclosing query, so that the query becomes independent.

Below, o is a table of the enclosing query, and d has the distinct values of o.k. The first query becomes the second::

    SELECT COUNT(*) AS n FROM i WHERE i.k < o.k
    SELECT d.k, COALESCE(q.n, 0) AS n
    FROM d LEFT JOIN (SELECT d.k, COUNT(*) AS n FROM d JOIN i ON i.k < d.k GROUP BY d.k) q ON q.k = d.k
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.records import dataclass
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
from freshviews.sql.blocks.joins.lowering import ONE, Read, distinct_values, is_read, lowered
from freshviews.sql.blocks.joins.tree import FullJoin, Joined, LeftJoin, all_aliases, free_alias
from freshviews.sql.blocks.optional import EQUALITIES, equality, keyed
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, integer, key, nodes_of, replaced
from freshviews.sql.names.marks import OUTER, is_marked, marks, unmarked
from freshviews.sql.names.scope import Entry, Scope, Source
from freshviews.types import BOOLEAN


def marked_columns(exprs: Iterable[Expr]) -> dict[str, Column]:
    """The marked columns in expressions, by name."""
    return {n.name: n for expr in exprs for n in nodes_of(expr) if isinstance(n, Column) and is_marked(n)}


def depends(bound: Bound) -> bool:
    """True if a query names a column of an enclosing query."""
    return any(is_marked(expr) for select in bound.selects for expr in select.exprs)


@dataclass(frozen=True)
class Domain:
    """Sources with the values of marked columns. ``to``: the source's column for each marked one, by name."""

    sources: tuple[Source, ...]
    to: Mapping[str, Column]

    def over(self, expr: Expr) -> Expr:
        """The expression with marked columns replaced by the domain's."""
        return replaced(expr, lambda part: self.to.get(part.name) if isinstance(part, Column) else None)

    def beside(self, joined: Joined, columns: Mapping[str, Column]) -> Joined:
        """The join restricted to the values that the marked columns have in the row of the enclosing query."""
        equal = (equality(self.to[name], column) for name, column in columns.items())
        return replace(joined, sources=(*joined.sources, *self.sources), conjuncts=(*joined.conjuncts, *equal))


def domain_of(columns: Mapping[str, Column], names: Names | None, views: Views, taken: list[str]) -> Domain:
    """The domain of marked columns: one source per enclosing query that has some. Adds their aliases to ``taken``."""
    around = names
    left = dict(columns)
    sources: list[Source] = []
    to: dict[str, Column] = {}
    depth = 1
    while left:
        assert around is not None
        here = [name for name in left if not name.startswith(OUTER * (depth + 1))]
        if here:
            own = tuple(_without_mark(left.pop(name), depth) for name in here)
            made = views.shared_source(around.domain(own))
            source = replace(made, alias=free_alias("around", taken))
            sources.append(source)
            to.update((name, source.column(c)) for name, c in zip(here, source.columns, strict=True))
        around, depth = around.around, depth + 1
    return Domain(tuple(sources), to)


def as_bag(bound: Bound, names: Names | None, views: Views, forced: bool = False, alias: str = "") -> Select:
    """The rows of a query that may depend on others, as one internal view with predicates that tie it to a row of each.

    ``forced``: the view computes the columns of the list. ``alias``: the view's.
    """
    keys, made = _independent(bound, names, views, forced)
    source = views.source_of(views.internal_view(uniquely_named(made)))
    source = replace(source, alias=alias or source.alias)
    own = [source.column(column) for column in source.columns]
    conjuncts = tuple(replace(one, args=(column, one.args[1])) for one, column in zip(keys, own, strict=False))
    listed = zip(bound.columns, own[len(keys) :], strict=True)
    return Select("bag", (source,), conjuncts, tuple(Item(c.name, column) for c, column in listed))


def as_optional_source(bound: Bound, names: Names, views: Views) -> Select | None:
    """An aggregate without GROUP BY for each row of the enclosing query, as an optional source with the aggregates of
    the matching rows, and the list over them; None for another query."""
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


def _independent(bound: Bound, names: Names | None, views: Views, forced: bool) -> tuple[list[Call], Bound]:
    """The query with key columns in front, and for each an equality with the marked expression whose value it has."""
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
    conditions = [equality(own, columns[name]) for name, own in domain.to.items()]
    return conditions, replace(bound, selects=selects, nullable=None)


def _key(conjunct: Expr) -> Call | None:
    """An equality of an expression of the query with one of marked columns; None for another predicate."""
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
    """A bag or groups with further columns in front; groups are also grouped by them."""
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
    """HAVING and the list of a SELECT over columns with its aggregates, which are all NULL if there are no rows."""

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


def _without_mark(column: Column, depth: int) -> Expr:
    made: Expr = column
    for _ in range(depth):
        made = unmarked(made)
    return made


def tied(joined: Joined, names: Names, views: Views) -> Joined:
    """The join with a domain beside its sources, so that none of its outer joins names columns of enclosing queries."""
    return _tied(joined, names, views, all_aliases(joined))


def values_of(joined: Joined, columns: tuple[Expr, ...], around: Names | None, views: Views) -> Select:
    """A superset of the distinct values that columns of a join have for any row of the queries ``around`` it."""
    free = joined if around is None else tied(joined, around, views)
    return distinct_values(free, columns, views)


def as_source(joined: Joined, around: Names | None, views: Views, read: Read, taken: list[str]) -> Joined:
    """The join as one internal view, with predicates that tie it to a row of the queries ``around`` it. Its columns are
    the columns of the scope in ``read``; all are plain.

    If only equalities such as ``i.k = o.k`` use columns of the enclosing query, the opposite sides, here i.k, become
    columns of the query. Otherwise the query is joined with the *domain* d, the distinct values of the columns, and is
    also grouped by them.
    """
    flat = lowered(joined if around is None else tied(joined, around, views), views, read)
    scope = flat.scope
    # If only a subquery read a column, the source that represents both no longer has the column.
    there = {source.column(column).name for source in flat.sources for column in source.columns}
    known = [entry for entry in dict.fromkeys((*scope.entries, *scope.visible)) if is_read(entry, read)]
    entries = [entry for entry in known if there.issuperset(columns_of(entry.expr))]
    items = tuple(Item(entry.name, entry.expr) for entry in entries) or (ONE,)
    bag = Select("bag", flat.sources, flat.conjuncts, items, absent=flat.absent, optional=flat.optional)
    alias = free_alias("_".join(scope.tables[:2]) or "q", taken)
    rows = as_bag(Bound((bag,)), around, views, alias=alias)
    to = {entry: item.expr for entry, item in zip(entries, rows.items, strict=False)}

    def now(some: tuple[Entry, ...]) -> tuple[Entry, ...]:
        return tuple(replace(entry, expr=to[entry]) for entry in some if entry in to)

    return Joined(rows.sources, rows.conjuncts, Scope(now(scope.entries), now(scope.visible)))


def tied_by_on(
    row: Joined, right: Joined, on: tuple[Expr, ...], names: Names, views: Views
) -> tuple[Joined, Joined, tuple[Expr, ...]]:
    """A row, the side that may have its partner, and ON, in which only equalities with that side name columns of
    enclosing queries: a domain beside the row has all others."""
    taken = [*all_aliases(row), *all_aliases(right)]
    row, right = _tied(row, names, views, taken), _side(right, names, views, taken)
    on, right = (*on, *filter(is_marked, right.conjuncts)), _without_marks(right)
    columns = marked_columns(on)
    looked_up = len(right.sources) == 1 and not (right.left or right.full)
    if not columns or (looked_up and keyed(on, right.sources[0].alias, row.aliases - row.required) is not None):
        return row, right, on
    domain = domain_of(columns, names, views, taken)
    return domain.beside(row, columns), right, tuple(map(domain.over, on))


def _tied(joined: Joined, names: Names, views: Views, taken: list[str]) -> Joined:
    freed = _with_domains_per_side(_with_domain_in_on(joined, names, views, taken), names, views, taken)
    columns = marked_columns(expr for one in freed.left for expr in one.on)
    if not columns:
        return freed
    domain = domain_of(columns, names, views, taken)
    left = tuple(replace(one, on=tuple(map(domain.over, one.on))) for one in freed.left)
    return domain.beside(replace(freed, left=left), columns)


def _side(joined: Joined, names: Names, views: Views, taken: list[str]) -> Joined:
    """A side of a join whose conjuncts alone name columns of enclosing queries."""
    made = _tied(joined, names, views, taken)
    columns = marked_columns(other for one in made.absent for _, other in one.pairs)
    if not columns:
        return made
    domain = domain_of(columns, names, views, taken)
    absent = tuple(
        replace(one, pairs=tuple((own, domain.over(other)) for own, other in one.pairs)) for one in made.absent
    )
    return domain.beside(replace(made, absent=absent), columns)


def _without_marks(joined: Joined) -> Joined:
    return replace(joined, conjuncts=tuple(one for one in joined.conjuncts if not is_marked(one)))


def _with_domain_in_on(joined: Joined, names: Names, views: Views, taken: list[str]) -> Joined:
    """The join whose outer joins name columns of enclosing queries only in ON."""
    left: list[LeftJoin] = []
    for one in joined.left:
        right = _side(one.right, names, views, taken)
        left.append(LeftJoin(_without_marks(right), (*one.on, *filter(is_marked, right.conjuncts))))
    return replace(joined, left=tuple(left))


def _with_domains_per_side(joined: Joined, names: Names, views: Views, taken: list[str]) -> Joined:
    """The join whose FULL JOINs name no columns of enclosing queries: each side has its own domain, and the values of
    the side that is present tie a row to the enclosing query."""
    full: list[FullJoin] = []
    ties: list[Expr] = []
    for one in joined.full:
        left, right = (_side(side, names, views, taken) for side in (one.left, one.right))
        columns = marked_columns((*one.on, *left.conjuncts, *right.conjuncts))
        own, other = (domain_of(columns, names, views, taken) for _ in "lr")
        both = tuple(equality(own.to[name], other.to[name]) for name in columns)
        full.append(FullJoin(_with_domain(left, own), _with_domain(right, other), (*map(own.over, one.on), *both)))
        for name, column in columns.items():
            there = logic.first_of([replace(domain.to[name], nullable=True) for domain in (own, other)])
            ties.append(equality(there, column))
    return replace(joined, full=tuple(full), conjuncts=(*joined.conjuncts, *ties))


def _with_domain(side: Joined, domain: Domain) -> Joined:
    """A side of a join beside each value of the domain that its conjuncts name."""
    conjuncts = tuple(map(domain.over, side.conjuncts))
    return replace(side, sources=(*side.sources, *domain.sources), conjuncts=conjuncts)
