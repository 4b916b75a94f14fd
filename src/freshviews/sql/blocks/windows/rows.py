"""Makes the views that compute window functions, and joins them with the rows or puts them in the rows' place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

from freshviews.catalog.definitions import ViewDef
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import EVERY
from freshviews.sql.blocks.bound import (
    AggregateCall,
    Bound,
    Item,
    Limited,
    Select,
    Sort,
    beside_ref,
    distinct_over,
    number_ref,
    there_ref,
)
from freshviews.sql.blocks.joins.tree import Joined, LeftJoin, free_alias
from freshviews.sql.blocks.limit import Clause
from freshviews.sql.blocks.optional import equality
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.blocks.views import Views
from freshviews.sql.blocks.windows.binding import Window
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, integer, key, nodes_of, renamed, replaced, retyped
from freshviews.sql.expressions.nulls import with_nullability
from freshviews.sql.names.scope import Source, alias_of, name_of
from freshviews.types import BIGINT, BOOLEAN, STRING

Numbers = dict[Hashable, Expr]
"""Row numbers, by partition and order."""

_BEYOND = 2**62
"""A bound beyond the codes of all types except BIGINT, doubles and strings."""


def joined_with(
    window: Window,
    base: Source,
    around: tuple[Expr, ...],
    joined: Joined,
    views: Views,
    over: Callable[[Expr], Expr],
    numbers: Numbers,
) -> tuple[Expr, Joined]:
    """The value of a window function over the rows of a source, and the join that has it.

    ``around``: columns of the source that have one value in each partition. ``over``: maps the expressions of the
    window to the source. ``numbers``: the numbers that the source has so far.

    An aggregate is a column of a view with one row per partition, or per value of ORDER BY. The rows are joined with
    this view by equal values; NULL equals NULL. A row number, or a value of a neighbouring row, is a column of a view
    of all rows. This view replaces the source.
    """
    return _Rows(base, views, joined, numbers).value(window, around, over)


def with_occurrence_numbers(joined: Joined, views: Views) -> Joined:
    """The rows of one source, with a number for each among the rows that are equal in all columns.

    Orders then end in all columns of the rows, so all places of a row belong to the same one of equal rows.
    """
    (base,) = joined.sources
    known = {column.name for column in base.columns if not column.nullable}
    if any(known.issuperset(names) for names in views.keys_of(base)):
        return joined
    rows = _Rows(base, views, joined, {})
    rows.number(tuple(map(base.column, base.columns)), ())
    return rows.joined


def first_rows(rows: Select, groups: tuple[Expr, ...], order: tuple[Sort, ...], clause: Clause, views: Views) -> Select:
    """The first rows of each group of a SELECT over one source, whose items break ties."""
    assert clause.limit is not None
    (base,) = rows.sources
    ties = tuple(Sort(item.expr, False, False) for item in rows.items)
    items = tuple(Item(column.name, base.column(column)) for column in base.columns)
    made = Limited((*order, *ties), clause.limit, clause.offset, groups)
    view = views.internal_view(Bound((Select("bag", (base,), (), items, limit=made),)))
    return replace(rows, sources=(replace(views.source_of(view), alias=base.alias),))


@dataclass
class _Rows:
    """The rows of window functions, and the join with their values.

    ``base``: the source of the rows, one of ``joined``. A function that numbers rows replaces it by a view with the
    same columns and more, under the same alias.
    """

    base: Source
    views: Views
    joined: Joined
    numbers: Numbers

    def value(
        self, window: Window, around: tuple[Expr, ...], over: Callable[[Expr], Expr]
    ) -> tuple[Expr, Joined]:
        """The value of a window function, and the join that has it."""
        partition = (*around, *(over(one) for one in window.partition if not isinstance(over(one), Literal)))
        order = tuple(replace(one, expr=over(one.expr)) for one in window.order)
        order = tuple(one for one in order if not isinstance(one.expr, Literal))
        calls = tuple(replace(one, args=tuple(map(over, one.args))) for one in window.calls)
        if window.shift == 0:
            return over(window.value), self.joined
        if window.shift is not None:
            return self._shifted(window, over, partition, order), self.joined
        if window.place:
            return self._at_place(window, over, partition, order), self.joined
        if window.frame is not None:
            return self._framed(window, calls, partition, order), self.joined
        if window.rank:
            return self._ranked(window.rank, partition, order), self.joined
        return self._aggregated(window, calls, partition, order), self.joined

    def _aggregated(
        self, window: Window, calls: tuple[AggregateCall, ...], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """An aggregate over the partition, or over the rows up to the current one and those at its place."""
        order = tuple(map(_without_null, order))
        keys = (*partition, *(one.expr for one in order))
        item = Item("v", window.value)
        if not order:
            select = _grouped(Select("bag", (self.base,), (), ()), keys, (item,), calls)
            return self._join_view_of(select, keys)
        places, again = self._distinct_places(partition, order), self._again
        columns = [places.column(column) for column in places.columns]
        test = _not_after(order, columns[len(partition) :], again)
        same = [equality(column, again(one)) for column, one in zip(columns, partition, strict=False)]
        rows = Select("bag", (places, self._other), (*same, *logic.conjuncts_of(test)), ())
        moved = tuple(replace(one, args=tuple(map(again, one.args))) for one in calls)
        return self._join_view_of(_grouped(rows, columns, (item,), moved), keys)

    def number(self, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """The numbers of the rows, whose source is then a view that has them."""
        which = (*map(key, partition), *((key(one.expr), one.descending, one.nulls_last) for one in order))
        if which not in self.numbers:
            limit = Limited(order, EVERY, 0, partition, "row_number")
            self._replace((Item("row_number", number_ref()),), limit)
            self.numbers[which] = self.base.column(self.base.columns[-1])
        return self.numbers[which]

    def _replace(self, items: tuple[Item, ...], limit: Limited) -> None:
        """Replace the rows by a view with further columns, which depend on the places of rows in an order."""
        select = Select("bag", (self.base,), (), (*self._all(), *items), limit=limit)
        view = self.views.internal_view(uniquely_named(Bound((select,))))
        made = replace(self.views.source_of(view), alias=self.base.alias)
        sources = tuple(made if one.alias == made.alias else one for one in self.joined.sources)
        self.joined, self.base = replace(self.joined, sources=sources), made

    def _all(self) -> tuple[Item, ...]:
        """All columns of the rows."""
        return tuple(Item(column.name, self.base.column(column)) for column in self.base.columns)

    def _by_places(
        self,
        kind: str,
        rows: Source,
        items: tuple[Item, ...],
        partition: tuple[Expr, ...],
        order: tuple[Sort, ...],
        tests: tuple[Expr, ...] = (),
    ) -> ViewDef:
        """A view of the rows that pass the tests, with their numbers or ranks as the last column."""
        limit = Limited(order, EVERY, 0, partition, kind)
        select = Select("bag", (rows,), tests, (*items, Item(kind, number_ref())), limit=limit)
        return self.views.internal_view(uniquely_named(Bound((select,))))

    def _occurrence(self, alias: str) -> Source:
        """Another occurrence of the rows, in the join."""
        return replace(self.base, alias=self._alias(alias))

    def _moved(self, expr: Expr, other: Source) -> Expr:
        """An expression over the rows, moved to another occurrence of them."""

        def to(name: str) -> str:
            return other.alias + name.removeprefix(self.base.alias) if alias_of(name) == self.base.alias else name

        return renamed(expr, to)

    def _shifted(
        self, window: Window, over: Callable[[Expr], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """The value of a row that is some rows before or after. The source of the rows is then a view that has, for
        each row, the columns of that other row."""
        assert window.shift is not None and window.default is not None
        value = over(window.value)
        own = {n.name: n for n in nodes_of(value) if isinstance(n, Column)}
        limit = Limited(order, EVERY, 0, partition, shift=window.shift, beside=tuple(own.values()))
        wanted = [Item(name_of(one.name), beside_ref(i, one)) for i, one in enumerate(own.values())]
        self._replace((*wanted, Item("there", there_ref())), limit)
        *others, there = map(self.base.column, self.base.columns[-len(wanted) - 1 :])
        to = dict(zip(own, others, strict=True))
        beside = replaced(value, lambda part: to.get(part.name) if isinstance(part, Column) else None)
        known = logic.compare("=", there, integer(1))
        return logic.choose([(known, beside)], over(window.default))

    def _at_place(
        self, window: Window, over: Callable[[Expr], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """The value of one row of the partition."""
        assert window.default is not None
        value, rising = over(window.value), order
        if window.place < 0:
            rest = (Sort(self.base.column(column), False, False) for column in self.base.columns)
            order = tuple(Sort(o.expr, not o.descending, not o.nulls_last) for o in (*order, *rest))
        counts = (call("is_not_null", (value,), BOOLEAN),) if window.skips and value.nullable else ()
        view = self._by_places("row_number", self.base, self._all(), partition, order, counts)
        other = replace(self.views.source_of(view), alias=self._alias("at_place"))
        own = other.column(other.columns[-1])
        same = [equality(self._moved(one, other), one) for one in partition]
        at = logic.compare("=", own, integer(abs(window.place)))
        self.joined = replace(
            self.joined, left=(*self.joined.left, LeftJoin(Joined((other,)), (*same, *logic.conjuncts_of(at))))
        )
        optional = dict.fromkeys((other.column(column).name for column in other.columns), True)
        found = with_nullability(self._moved(value, other), optional)
        branches = [(call("is_not_null", (replace(own, nullable=True),), BOOLEAN), found)]
        if window.so_far and rising:
            places = [with_nullability(self._moved(one.expr, other), optional) for one in rising]
            branches.insert(0, (_before(rising, places), over(window.default)))
        return logic.choose(branches, over(window.default))

    def _framed(
        self, window: Window, calls: tuple[AggregateCall, ...], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """An aggregate over a number of rows before and after."""
        assert window.frame is not None
        own = self.number(partition, order)
        row, other = self._occurrence("row_of_frame"), self._occurrence("frame")
        number, at = self._moved(own, row), self._moved(own, other)
        keys = [*(self._moved(one, row) for one in partition), number]
        tests: list[Expr] = [
            equality(self._moved(one, other), place) for one, place in zip(partition, keys, strict=False)
        ]
        for sign, bound in zip((">=", "<="), window.frame, strict=True):
            if bound is not None:
                tests.append(logic.compare(sign, at, call("add_int", (number, integer(bound)), BIGINT)))
        moved = tuple(replace(o, args=tuple(self._moved(a, other) for a in o.args)) for o in calls)
        made = _grouped(Select("bag", (row, other), tuple(tests), ()), keys, (Item("v", window.value),), moved)
        return self._join_view_of(made, (*partition, own))

    def _ranked(self, rank_by: str, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """The number of a row, or the rank of its place in the order."""
        if rank_by == "row_number":
            return self.number(partition, order)
        keys = (*partition, *(one.expr for one in order))
        if rank_by == "rank":
            return self._join(self._by_places("rank", self.base, _listed(keys), partition, order), keys)
        # The distinct places have no equal rows, so their numbers are dense ranks.
        places = self._distinct_places(partition, order)
        columns = tuple(map(places.column, places.columns))
        sorts = zip(order, columns[len(partition) :], strict=True)
        within = tuple(replace(one, expr=column) for one, column in sorts)
        view = self._by_places("row_number", places, _listed(columns), columns[: len(partition)], within)
        return self._join(view, keys)

    def _distinct_places(self, partition: Sequence[Expr], order: Sequence[Sort]) -> Source:
        """The distinct places in the order."""
        exprs = (*partition, *(one.expr for one in order))
        values = distinct_over(Select("bag", (self.base,), (), _listed(exprs)))
        # Equal expressions are one group, but still a column each.
        return replace(self.views.shared_source(values), alias=self._alias("places"))

    @property
    def _other(self) -> Source:
        """Another occurrence of the rows, inside a view."""
        return replace(self.base, alias=f"{self.base.alias}_again")

    def _again(self, expr: Expr) -> Expr:
        """An expression over the rows, moved to another occurrence of them."""
        return self._moved(expr, self._other)

    def _alias(self, wish: str) -> str:
        """An alias that no source of the join has."""
        taken = [*self.joined.aliases, *(one.source.alias for one in self.joined.absent), self._other.alias]
        return free_alias(wish, taken)

    def _join_view_of(self, select: Select, keys: Sequence[Expr]) -> Expr:
        """The last column of a view that has each of the keys once."""
        return self._join(self.views.internal_view(uniquely_named(Bound((select,)))), keys)

    def _join(self, view: ViewDef, keys: Sequence[Expr]) -> Expr:
        """Join with a view by its first columns, NULL included; returns its last column."""
        source = replace(self.views.source_of(view), alias=self._alias("over"))
        columns = [source.column(column) for column in source.columns]
        same = (equality(column, one) for column, one in zip(columns, keys, strict=False))
        self.joined = replace(
            self.joined, sources=(*self.joined.sources, source), conjuncts=(*self.joined.conjuncts, *same)
        )
        return columns[-1]


def _listed(exprs: Sequence[Expr]) -> tuple[Item, ...]:
    """Expressions as the columns of a SELECT."""
    return tuple(Item(f"k{i}", expr) for i, expr in enumerate(exprs, 1))


def _grouped(
    rows: Select, keys: Sequence[Expr], items: tuple[Item, ...], calls: tuple[AggregateCall, ...]
) -> Select:
    """Aggregates of rows by keys, which are the first columns."""
    names = (name_of(one.name) if isinstance(one, Column) else f"k{i}" for i, one in enumerate(keys, 1))
    bag = replace(rows, items=tuple(Item(name, one) for name, one in zip(names, keys, strict=True)))
    made = distinct_over(bag)
    return replace(made, kind="groups" if keys else "global", items=(*made.items, *items), aggregates=calls)


def _without_null(sort: Sort) -> Sort:
    """The same order with a number in the place of NULL, if the codes of the type leave one free."""
    expr = sort.expr
    if not expr.nullable or expr.type == BIGINT or expr.type == STRING or expr.type.is_float:
        return sort
    # NULL first in a rising order, or last in a falling one, is the least value of all.
    beyond = integer(_BEYOND if sort.nulls_last != sort.descending else -_BEYOND)
    return replace(sort, expr=logic.first_of((retyped(expr, BIGINT), beyond)))


def _not_after(order: Sequence[Sort], places: Sequence[Expr], again: Callable[[Expr], Expr]) -> Expr:
    """True for a row at a place or before it."""
    moved = tuple(replace(one, expr=again(one.expr)) for one in order)
    if len(order) == 1 and not order[0].expr.nullable:
        # A range, which an ordered index answers.
        return logic.compare(">=" if order[0].descending else "<=", moved[0].expr, places[0])
    equal = [logic.null_safe_equal(one.expr, place) for one, place in zip(moved, places, strict=True)]
    return logic.either(_before(moved, places), logic.all_of(equal))


def _before(order: Sequence[Sort], places: Sequence[Expr]) -> Expr:
    """True for a row before a place, else FALSE or NULL."""
    sort, place = order[0], places[0]
    tests = [logic.compare(">" if sort.descending else "<", sort.expr, place)]
    first, last = (place, sort.expr) if sort.nulls_last else (sort.expr, place)
    if first.nullable:
        null = call("is_null", (first,), BOOLEAN)
        tests.append(logic.both(null, call("is_not_null", (last,), BOOLEAN)) if last.nullable else null)
    test = logic.any_of(tests)
    if len(order) == 1:
        return test
    same = logic.null_safe_equal(sort.expr, place)
    return logic.either(test, logic.both(same, _before(order[1:], places[1:])))
