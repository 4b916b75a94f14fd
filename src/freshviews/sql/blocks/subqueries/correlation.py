"""Finds equalities between columns of a subquery and columns of its enclosing query, such as r.k = o.k.

Groups the subquery by its own side of these equalities, here by r.k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import AggregateCall, Bound, Item, Select, group_ref, over_groups
from freshviews.sql.blocks.joins.dependent import depends
from freshviews.sql.blocks.optional import EQUALITIES
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions.build import call, key, null, renamed, replaced
from freshviews.sql.names.marks import is_marked, marks, unmarked
from freshviews.sql.names.scope import Source, aliases_in, name_of
from freshviews.types import BOOLEAN, INT


@dataclass(frozen=True)
class Pair:
    """An equality between the subquery and the enclosing query: the subquery's side, and the other side, unmarked."""

    own: Expr
    other: Expr
    equality: Call

    def over(self, column: Column) -> Expr:
        return replace(self.equality, args=(column, self.other))


def pair_of(conjunct: Expr, over: Callable[[Expr], Expr]) -> Pair | None:
    """An equality of the subquery with the enclosing query; None for another predicate."""
    if isinstance(conjunct, Call) and conjunct.op in EQUALITIES:
        for own, other in (conjunct.args, conjunct.args[::-1]):
            if not is_marked(own) and marks(other) == columns_of(other):
                return Pair(own, over(unmarked(other)), conjunct)
    return None


def tested(condition: Expr) -> Pair:
    """A predicate over the enclosing query alone: all rows of the subquery match if it is TRUE, else none."""
    one = Literal(1, INT)
    other = call("case", (condition, one, null(INT)), INT)
    return Pair(one, other, Call("eq", (one, other), BOOLEAN))


def keys_of(pairs: Sequence[Pair]) -> list[Item]:
    """The subquery's sides of the pairs as columns, each named by its own column."""
    owns = [pair.own for pair in pairs]
    return [Item(name_of(e.name) if isinstance(e, Column) else f"k{i}", e) for i, e in enumerate(owns, 1)]


def at_column(equality: Expr, column: Column) -> Expr:
    """The equality with ``column`` in the place of its column without a name."""
    return replaced(equality, lambda part: column if isinstance(part, Column) and not part.name else None)


def grouped(select: Select, pairs: Sequence[Pair], calls: tuple[AggregateCall, ...], items: Sequence[Item]) -> Select:
    """Aggregates of a subquery, grouped by its sides of the pairs, which are its first columns."""
    chosen = {key(item.expr): item for item in keys_of(pairs)}
    places = {name: i for i, name in enumerate(chosen)}
    keys = [Item(item.name, group_ref(places[key(item.expr)], item.expr)) for item in keys_of(pairs)]
    listed = [Item(item.name, over_groups(item.expr, tuple(chosen.values()))) for item in items]
    return replace(
        select,
        kind="groups" if pairs else "global",
        items=(*keys, *listed),
        groups=tuple(chosen.values()),
        aggregates=calls,
    )


def columns_over(select: Select, items: Sequence[Item]) -> Select:
    """The join of a bag with other columns."""
    made = Select("bag", select.sources, select.conjuncts, tuple(items), absent=select.absent)
    return replace(made, optional=select.optional)


def is_one_row(bound: Bound) -> bool:
    """True if the query always has exactly one row."""
    select = bound.selects[0]
    return len(bound.selects) == 1 and select.kind == "global" and select.having is None and bound.combined is None


def is_unique(select: Select, pairs: Sequence[Pair], views: Views) -> bool:
    """True if at most one row of a join has given values of the pairs: they determine keys of all its sources."""
    if select.kind != "bag" or select.limit is not None or select.absent:
        return False
    known = {
        pair.own.name
        for pair in pairs
        if isinstance(pair.own, Column) and not (pair.own.nullable and pair.equality.op == "null_safe_eq")
    }
    equal = [(own, other) for one in select.conjuncts for own, other in _sides(one)]
    for one in select.optional:
        # ON does not restrict the rows that it is joined with.
        sides = (pair for term in one.on for pair in _sides(term))
        equal += [(own, other) for own, other in sides if aliases_in(own) == {one.alias}]
    left = list(select.sources)
    while left:
        known.update(
            own.name for own, other in equal if isinstance(own, Column) and known.issuperset(columns_of(other))
        )
        found = [one for one in left if any(known.issuperset(_names(one, key)) for key in views.keys_of(one))]
        if not found:
            return False
        known.update(one.column(column).name for one in found for column in one.columns)
        left = [one for one in left if one not in found]
    return True


def _sides(term: Expr) -> Sequence[tuple[Expr, Expr]]:
    if isinstance(term, Call) and term.op in ("eq", "eq_float"):
        one, other = term.args
        return (one, other), (other, one)
    return ()


def _names(source: Source, key: Sequence[str]) -> list[str]:
    columns = {column.name: source.column(column).name for column in source.columns}
    return [columns[name] for name in key]


def with_aliases(select: Select, pairs: Sequence[Pair], free: Callable[[str], str]) -> tuple[Select, tuple[Pair, ...]]:
    """A join with other aliases for its sources, and its pairs."""
    sources = tuple(replace(source, alias=free(source.alias)) for source in select.sources)
    aliases = {old.alias: new.alias for old, new in zip(select.sources, sources, strict=True)}
    to = {
        old.column(column).name: new.column(column).name
        for old, new in zip(select.sources, sources, strict=True)
        for column in old.columns
    }

    def over(expr: Expr) -> Expr:
        return renamed(expr, lambda name: to.get(name, name))

    made = select.mapped(over)
    optional = tuple(replace(one, alias=aliases[one.alias]) for one in made.optional)
    return replace(made, sources=sources, optional=optional), tuple(replace(one, own=over(one.own)) for one in pairs)


def is_distinct(bound: Bound) -> bool:
    """True if its rows are groups, each once."""
    select = bound.selects[0]
    if len(bound.selects) > 1 or select.kind != "groups" or select.sets or depends(bound):
        return False
    shown = {item.expr.name for item in select.items if isinstance(item.expr, Column)}
    return shown.issuperset(group_ref(i, group.expr).name for i, group in enumerate(select.groups))
