"""Correlation: equalities that tie a subquery to a row of the enclosing query, and grouping by its sides of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.sql.blocks.bound import AggregateCall, Bound, Item, Select, aggregate_index, group_ref, over_groups
from freshviews.sql.blocks.optional import EQUALITIES
from freshviews.sql.blocks.subqueries.dependent import depends
from freshviews.sql.expressions.build import integer, key, replaced
from freshviews.sql.expressions.nulls import where_null
from freshviews.sql.names.marks import OUTER, is_marked, marks, unmarked
from freshviews.sql.names.scope import name_of


@dataclass(frozen=True)
class Pair:
    """An equality between the subquery and the enclosing query: the subquery's side, and the other side, unmarked."""

    own: Expr
    other: Expr
    equality: Call

    def over(self, column: Column) -> Expr:
        return replace(self.equality, args=(column, self.other))



def pair_of(conjunct: Expr, over: Callable[[Expr], Expr]) -> Pair | None:
    """An equality of the subquery with the enclosing query; None where it is no such equality."""
    if isinstance(conjunct, Call) and conjunct.op in EQUALITIES:
        for own, other in (conjunct.args, conjunct.args[::-1]):
            if not is_marked(own) and marks(other) == columns_of(other):
                return Pair(own, over(unmarked(other)), conjunct)
    return None



def keys_of(pairs: Sequence[Pair]) -> list[Item]:
    """The subquery's sides of the pairs as columns, each named by its own column."""
    owns = [pair.own for pair in pairs]
    return [Item(name_of(e.name) if isinstance(e, Column) else f"k{i}", e) for i, e in enumerate(owns, 1)]



def at_column(equality: Expr, column: Column) -> Expr:
    """An equality with a column in the place of the column without a name."""
    return replaced(equality, lambda part: column if isinstance(part, Column) and not part.name else None)



def grouped(select: Select, pairs: Sequence[Pair], calls: tuple[AggregateCall, ...], items: Sequence[Item]) -> Select:
    """Aggregates of a subquery by its sides of the pairs, which come first among its columns."""
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



def of_no_rows(value: Expr, calls: Sequence[AggregateCall]) -> Expr:
    """The value of an aggregate expression over no rows: COUNT is 0, all else NULL."""

    def zero(part: Expr) -> Expr | None:
        index = aggregate_index(part.name) if isinstance(part, Column) else None
        return integer(0) if index is not None and calls[index].function == "count" else None

    return where_null(replaced(value, zero), lambda name: not name.startswith(OUTER))



def columns_over(select: Select, items: Sequence[Item]) -> Select:
    """The join of a bag with other columns."""
    made = Select("bag", select.sources, select.conjuncts, tuple(items), absent=select.absent)
    return replace(made, optional=select.optional)



def is_distinct(bound: Bound) -> bool:
    """True if its rows are groups, each once."""
    select = bound.selects[0]
    if len(bound.selects) > 1 or select.kind != "groups" or select.sets or depends(bound):
        return False
    shown = {item.expr.name for item in select.items if isinstance(item.expr, Column)}
    return shown.issuperset(group_ref(i, group.expr).name for i, group in enumerate(select.groups))
