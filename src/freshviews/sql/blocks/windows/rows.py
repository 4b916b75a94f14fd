"""Makes the internal views that compute window functions.

A view of aggregates is joined with the rows of the SELECT. A view of row numbers, or of neighbouring values, has all
rows of the SELECT and replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import field, replace

from freshviews.catalog.definitions import ViewDef
from freshviews.expr.nodes import Column, Expr, Literal, columns_of
from freshviews.expr.ops import may_fail
from freshviews.query.block import EVERY, GatheredColumn
from freshviews.query.block import Frame as Between
from freshviews.query.span import Span
from freshviews.records import dataclass
from freshviews.sql.blocks.aggregates import of_no_rows
from freshviews.sql.blocks.bound import (
    AggregateCall,
    Bound,
    Item,
    Limited,
    Select,
    Sort,
    aggregate_ref,
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
from freshviews.sql.blocks.windows.binding import Bound as FrameBound
from freshviews.sql.blocks.windows.binding import Frame, Step, Window, is_in_order, moved_place
from freshviews.sql.expressions import arithmetic, logic
from freshviews.sql.expressions.build import (
    TRUE,
    call,
    has_host,
    integer,
    key,
    nodes_of,
    null,
    renamed,
    replaced,
    retyped,
)
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.nulls import with_nullability
from freshviews.sql.names.scope import Source, alias_of, name_of
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING

_BEYOND = 2**62
"""Greater than any TIMESTAMP, whose years have four digits."""


@dataclass
class Numbers:
    """Describes the rows of the window functions of a SELECT.

    ``known``: their numbers so far, by partition and order. ``columns``: the names of their columns before the first
    function, which distinguish the rows that it needs apart; ``keys``: sets of these that do, without NULL.
    """

    known: dict[Hashable, Expr] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    keys: tuple[frozenset[str], ...] = ()

    def begin(self, base: Source, views: Views) -> None:
        """Note the columns of the rows, before the first function."""
        if not self.columns:
            names = {column.name for column in base.columns if not column.nullable}
            self.columns = tuple(column.name for column in base.columns)
            self.keys = tuple(frozenset(one) for one in views.keys_of(base) if names.issuperset(one))


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
    numbers.begin(base, views)
    return _Rows(base, views, joined, numbers).value(window, around, over)


def with_occurrence_numbers(joined: Joined, views: Views) -> Joined:
    """The rows of one source, with a number for each among the rows that are equal in all columns.

    Orders then end in all columns of the rows, so all places of a row belong to the same one of equal rows.
    """
    (base,) = joined.sources
    known = {column.name for column in base.columns if not column.nullable}
    if any(known.issuperset(names) for names in views.keys_of(base)):
        return joined
    rows = _Rows(base, views, joined, Numbers())
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


@dataclass(frozen=True)
class _Aggregate:
    """An aggregate over a frame: ``value``, over references to ``calls``; in an order of the rows of each partition."""

    frame: Frame | None
    value: Expr
    calls: tuple[AggregateCall, ...]
    partition: tuple[Expr, ...]
    order: tuple[Sort, ...]

    @classmethod
    def of(
        cls, made: AggregateCall, frame: Frame | None, partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> _Aggregate:
        """The value of one call."""
        return cls(frame, aggregate_ref(0, made, True), (made,), partition, order)

    @property
    def of_no_rows(self) -> Expr:
        """The value over an empty frame."""
        return of_no_rows(self.value, self.calls)

    @property
    def takes_values_once(self) -> bool:
        """True if the calls are over the same distinct values, of frames of which each place has all that the places
        before it have, or all that those after it have: a value then counts at one of its rows."""
        if self.frame is None or not self.calls or (self.frame.low is None) == (self.frame.high is None):
            return False
        args = self.calls[0].args
        return all(
            one.distinct and one.args == args and one.amount is None and one.function in ("count", "sum", "avg")
            for one in self.calls
        )

    def over(self, moved: Callable[[Expr], Expr]) -> _Aggregate:
        """The aggregate over other rows: ``moved`` maps the arguments of its calls."""
        return replace(self, calls=tuple(replace(one, args=tuple(map(moved, one.args))) for one in self.calls))

    def grouped(self, rows: Select, keys: Sequence[Expr]) -> Select:
        """The aggregate of rows by keys, which are the first columns."""
        return _grouped(rows, keys, (Item("v", self.value),), self.calls)


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
        frame = window.frame
        if frame is None or not any(isinstance(one, Step) for one in (frame.low, frame.high)):
            # Else a frame may leave out the rows of the only place.
            order = tuple(one for one in order if not isinstance(one.expr, Literal))
        calls = tuple(replace(one, args=tuple(map(over, one.args))) for one in window.calls)
        if window.shift == 0:
            return over(window.value), self.joined
        if window.shift is not None:
            made = self._beside_known if window.skips else self._shifted
            return made(window, over, partition, order), self.joined
        if window.rank:
            return self._ranked(window, partition, order), self.joined
        if window.place:
            if _is_of_place(window):
                partition, order, window = (*partition, *(one.expr for one in order)), (), replace(window, frame=None)
            made = self._at_place if _is_of_partition(window) else self._in_frame
            return made(window, over, partition, order), self.joined
        if window.joins_in_order:
            if frame is not None and frame.between is not None:
                calls = self._without_host(calls)
            calls = tuple(self._texts_in_order(one, order) for one in calls)
        return self._over_frame(_Aggregate(window.frame, window.value, calls, partition, order)), self.joined

    def _over_frame(self, one: _Aggregate) -> Expr:
        """An aggregate over the frame of each row."""
        within, frame = frozenset(map(key, one.partition)), one.frame
        varying = tuple(sort for sort in one.order if not _is_constant(sort.expr, within))
        if frame is None or (not varying and not frame.rows):
            select = one.grouped(Select("bag", (self.base,), (), ()), one.partition)
            found = self._join_view_of(select, one.partition)
            if frame is None or frame.has_current:
                return found
            # A frame beside the one value of ORDER BY is empty; that of NULL has the rows with NULL.
            known = call("is_not_null", (one.order[0].expr,), BOOLEAN)
            return logic.choose([(known, one.of_no_rows)], found)
        if frame.between is not None:
            return self._over_frames(one, frame.between)
        if frame.rows and None in (frame.low, frame.high):
            return self._to_an_end(one, frame)
        one = self._by_number(one, frame) if frame.rows else replace(one, order=varying)
        assert one.frame is not None
        made, keys = self._over_places(one, one.frame)
        if frame.has_current and not one.takes_values_once:
            return self._join_view_of(made, keys)
        return self._join_view_of(made, keys, one.of_no_rows)

    def _to_an_end(self, one: _Aggregate, frame: Frame) -> Expr:
        """An aggregate over the rows from one end of the partition. No two rows are equal, so each has a place of its
        own: the value of a row is that of the places up to the row at the bound of its frame, or from it on."""
        from_start = frame.low is None
        shift = frame.high if from_start else frame.low
        assert isinstance(shift, int)
        nothing, has_all = one.of_no_rows, shift == 0 or from_start == (shift > 0)
        exact = self._distinguished(one.partition, one.order)
        if not exact:
            # Each partition has one row.
            return self._over_frame(replace(one, frame=None, order=())) if has_all else nothing
        whole = Frame(False, None, 0) if from_start else Frame(False, 0, None)
        by_place = replace(one, frame=whole, order=exact)
        made, keys = self._over_places(by_place, whole)
        if shift == 0:
            return self._join_view_of(made, keys, nothing if by_place.takes_values_once else None)
        # The total of a partition is joined with those rows alone whose frame has all its rows.
        rows = Select("bag", (self.base,), (), ())
        total = one.grouped(rows, (*one.partition, integer(0)))
        there, others = self._beside(keys, shift, one.partition, one.order)
        branches = [(there, self._join_view_of(made, others, nothing))]
        if not has_all:
            return logic.choose(branches, nothing)
        is_there = logic.choose([(there, integer(1))], integer(0))
        return logic.choose(branches, self._join_view_of(total, (*one.partition, is_there), nothing))

    def _distinguished(self, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> tuple[Sort, ...]:
        """The order, with further columns until no two rows of a partition are equal in it."""
        names = {name_of(one.name) for one in (*partition, *(o.expr for o in order)) if isinstance(one, Column)}
        within = frozenset(map(key, partition))
        sorts = [one for one in order if not _is_constant(one.expr, within)]
        columns = {column.name: column for column in self.base.columns}
        for name in self.numbers.columns:
            if any(names.issuperset(one) for one in self.numbers.keys):
                break
            if name not in names:
                sorts.append(Sort(self.base.column(columns[name]), False, False))
                names.add(name)
        return tuple(sorts)

    def _is_order_of_key(self, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> bool:
        """True if the order is one range (``_not_after``), and no two rows of a partition are equal in it."""
        if len(order) != 1 or order[0].expr.nullable or order[0].expr.type.is_text:
            return False
        exprs = (*partition, order[0].expr)
        known = {name_of(one.name) for one in exprs if isinstance(one, Column) and not one.nullable}
        return any(known.issuperset(names) for names in self.views.keys_of(self.base))

    def _over_places(self, one: _Aggregate, frame: Frame) -> tuple[Select, tuple[Expr, ...]]:
        """An aggregate over the rows of a frame of RANGE, by place, and the keys of the current row's place."""
        # A condition with a host function of columns of both sides would be computed after the join, and one that may
        # fail is not a frame alone.
        partition, sorts = one.partition, [sort.expr for sort in one.order]
        shared = {n.name for expr in partition for n in nodes_of(expr) if isinstance(n, Column)}
        mixed = [expr for expr in sorts if has_host(expr) and shared.intersection(columns_of(expr))]
        computed = self._as_columns([*mixed, *filter(may_fail, sorts)])
        order = tuple(replace(sort, expr=computed.get(key(sort.expr), sort.expr)) for sort in one.order)
        steps = [bound for bound in (frame.low, frame.high) if isinstance(bound, Step)]
        if not all(is_in_order(order[0].expr.type, step) for step in steps):
            return self._over_moments(replace(one, order=order), frame)
        keys = (*partition, *(sort.expr for sort in order))
        # A place has a column for each bound that is not its own value.
        bounds = (moved_place(order[0].expr, step, order[0].descending) for step in steps)
        places, again = self._distinct_places((*keys, *bounds)), self._again
        columns = tuple(map(places.column, places.columns))
        own = columns[len(partition) : len(keys)]
        at: dict[FrameBound, tuple[Expr, ...] | None] = {None: None, 0: own}
        at.update(zip(steps, ((column,) for column in columns[len(keys) :]), strict=True))
        span = Span(
            tuple(again(sort.expr) for sort in order),
            own,
            tuple(sort.descending for sort in order),
            tuple(sort.nulls_last for sort in order),
            at[frame.low],
            at[frame.high],
        )
        tests = (equality(column, again(expr)) for column, expr in zip(columns, partition, strict=False))
        other = self._other
        if one.takes_values_once:
            other = self._rows_of_values(frame, one.calls[0].args, partition, order)
            one = replace(one, calls=tuple(replace(made, distinct=False) for made in one.calls))
        # The rows of a batch come before its places, which then read the sums of their frames.
        rows = Select("bag", (other, places), (*tests, span.condition), ())
        return one.over(again).grouped(rows, columns[: len(keys)]), keys

    def _rows_of_values(
        self, frame: Frame, args: tuple[Expr, ...], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Source:
        """For each list of values without NULL, the row of the partition that is in all frames that have one with these
        values: the first, or, if the frames end with the partition, the last one. Under the alias of ``_other``."""
        known = tuple(call("is_not_null", (one,), BOOLEAN) for one in args if one.nullable)
        if frame.high is None:
            order = tuple(Sort(one.expr, not one.descending, not one.nulls_last) for one in order)
        ties = tuple(Sort(item.expr, False, False) for item in self._all())
        groups = (*partition, *(one for one in args if not isinstance(one, Literal)))
        made = Select("bag", (self.base,), known, self._all(), limit=Limited((*order, *ties), 1, 0, groups))
        view = self.views.internal_view(uniquely_named(Bound((made,))))
        return replace(self.views.source_of(view), alias=self._other.alias)

    def _over_moments(self, one: _Aggregate, frame: Frame) -> tuple[Select, tuple[Expr, ...]]:
        """As ``_over_places``, where a greater place may have a smaller bound: each row is compared with the bounds of
        all places of its partition."""
        (order,) = one.order
        beyond = integer(_BEYOND if order.nulls_last != order.descending else -_BEYOND)

        def code(expr: Expr) -> Expr:
            made = retyped(expr, BIGINT)
            return logic.first_of((made, beyond)) if expr.nullable else made

        steps = [bound for bound in (frame.low, frame.high) if isinstance(bound, Step)]
        keys, again = (*one.partition, code(order.expr)), self._again
        bounds = (code(moved_place(order.expr, step, order.descending)) for step in steps)
        places = self._distinct_places((*keys, *bounds))
        columns = tuple(map(places.column, places.columns))
        at: dict[FrameBound, Expr] = {0: columns[len(one.partition)]}
        at.update(zip(steps, columns[len(keys) :], strict=True))
        tests: list[Expr] = [equality(x, again(y)) for x, y in zip(columns, one.partition, strict=False)]
        signs = ("<=", ">=") if order.descending else (">=", "<=")
        for sign, bound in zip(signs, (frame.low, frame.high), strict=True):
            if bound is not None:
                tests.append(logic.compare(sign, again(keys[-1]), at[bound]))
        rows = Select("bag", (places, self._other), tuple(tests), ())
        return one.over(again).grouped(rows, columns[: len(keys)]), keys

    def number(self, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """The numbers of the rows, whose source is then a view that has them."""
        which = (*map(key, partition), *((key(one.expr), one.descending, one.nulls_last) for one in order))
        if which not in self.numbers.known:
            limit = Limited(order, EVERY, 0, partition, "row_number")
            self._replace((Item("row_number", number_ref()),), limit)
            self.numbers.known[which] = self.base.column(self.base.columns[-1])
        return self.numbers.known[which]

    def _replace(self, items: tuple[Item, ...], limit: Limited) -> None:
        """Replace the rows by a view with further columns, which depend on the places of rows in an order."""
        select = Select("bag", (self.base,), (), (*self._all(), *items), limit=limit)
        self._put(self.views.internal_view(uniquely_named(Bound((select,)))))

    def _put(self, view: ViewDef) -> None:
        """Put a view with further columns in the place of the rows."""
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
        """The value of a row that is some rows before or after."""
        assert window.shift is not None and window.default is not None
        there, beside = self._value_beside(over(window.value), window.shift, partition, order)
        return logic.choose([(there, beside)], over(window.default))

    def _value_beside(
        self, value: Expr, shift: int, partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> tuple[Expr, Expr]:
        """A test of whether there is a row ``shift`` rows after each row, and its value."""
        there, (beside,) = self._beside((value,), shift, partition, order)
        return there, beside

    def _beside(
        self, values: tuple[Expr, ...], shift: int, partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> tuple[Expr, tuple[Expr, ...]]:
        """A test of whether there is a row ``shift`` rows after each row, and its values. The source of the rows is
        then a view that has, for each row, the columns of that other row."""
        if shift == 0:
            return TRUE, values
        own = {n.name: n for value in values for n in nodes_of(value) if isinstance(n, Column)}
        limit = Limited(order, EVERY, 0, partition, shift=shift, beside=tuple(own.values()))
        wanted = [Item(name_of(one.name), beside_ref(i, one)) for i, one in enumerate(own.values())]
        self._replace((*wanted, Item("there", there_ref())), limit)
        *others, there = map(self.base.column, self.base.columns[-len(wanted) - 1 :])
        to = dict(zip(own, others, strict=True))
        beside = (replaced(one, lambda part: to.get(part.name) if isinstance(part, Column) else None) for one in values)
        return logic.compare("=", there, integer(1)), tuple(beside)

    def _at_place(
        self, window: Window, over: Callable[[Expr], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """The value of one row of the partition, from its place on if the frame ends at the current place."""
        assert window.default is not None
        value, rising = over(window.value), order if _ends_here(window.frame) else ()
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
        if rising and (window.skips or window.place != 1):
            places = [with_nullability(self._moved(one.expr, other), optional) for one in rising]
            branches.insert(0, (_before(rising, places), over(window.default)))
        return logic.choose(branches, over(window.default))

    def _by_number(self, one: _Aggregate, frame: Frame) -> _Aggregate:
        """An aggregate over a number of rows before and after, as one over a range of their numbers."""

        def step(rows: FrameBound) -> FrameBound:
            assert isinstance(rows, int)
            return Step(1 if rows > 0 else -1, integer(abs(rows))) if rows else 0

        number = cast(self.number(one.partition, one.order), BIGINT)
        by_number = Frame(False, step(frame.low), step(frame.high))
        return replace(one, frame=by_number, order=(Sort(number, False, False),))

    def _over_frames(self, one: _Aggregate, frame: Between) -> Expr:
        """An aggregate over a bounded number of rows before and after. No two rows are equal."""
        one = replace(one, calls=self._without_host(one.calls))
        row, other = self._occurrence("row_of_frame"), self._occurrence("frame")
        keys = tuple(item.expr for item in self._all())
        rows, moved = Select("bag", (row, other), (), ()), one.over(lambda expr: self._moved(expr, other))
        made = moved.grouped(rows, [self._moved(expr, row) for expr in keys])
        within = tuple(self._moved(expr, row) for expr in one.partition)
        sorts = tuple(replace(sort, expr=self._moved(sort.expr, row)) for sort in one.order)
        known = {key(group.expr) for group in made.groups}
        more = {key(expr): expr for expr in (*within, *(sort.expr for sort in sorts)) if key(expr) not in known}
        groups = (*made.groups, *(Item(f"g{i}", expr) for i, expr in enumerate(more.values(), 1)))
        limit = Limited(sorts, EVERY, 0, within, frame=frame)
        made = replace(made, groups=groups, limit=limit)
        if not frame.low <= 0 <= frame.high:
            return self._join_view_of(made, keys, one.of_no_rows)
        view = self.views.internal_view(uniquely_named(Bound((made,))))
        self._put(view)
        return self.base.column(self.base.columns[-1])

    def _without_host(self, calls: tuple[AggregateCall, ...]) -> tuple[AggregateCall, ...]:
        """The calls over columns of the rows instead of host functions, which are not computed in a loop."""
        columns = self._as_columns([arg for call_ in calls for arg in call_.args if has_host(arg)])
        return tuple(replace(o, args=tuple(columns.get(key(arg), arg) for arg in o.args)) for o in calls)

    def _as_columns(self, exprs: Sequence[Expr]) -> dict[Hashable, Expr]:
        """Columns for expressions. The source of the rows is then a view that has them."""
        made = {key(one): one for one in exprs}
        if not made:
            return {}
        items = (*self._all(), *(Item(f"value{i}", one) for i, one in enumerate(made.values(), 1)))
        self._put(self.views.internal_view(uniquely_named(Bound((Select("bag", (self.base,), (), items),)))))
        return dict(zip(made, map(self.base.column, self.base.columns[-len(made) :]), strict=True))

    def _in_frame(
        self, window: Window, over: Callable[[Expr], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """The value of one row of a frame, found by its number or a key. Rows that are not counted have their own
        numbers."""
        value = over(window.value)
        known = call("is_not_null", (value,), BOOLEAN)
        skips = window.skips and value.nullable
        between = None if window.frame is None else window.frame.between
        if between is not None and not skips:
            return self._near(replace(window, frame=None, skips=False), between, over, partition, order)
        least = window.place > 0
        if abs(window.place) == 1 and self._is_order_of_key(partition, order):
            number, least = order[0].expr, least != order[0].descending
        else:
            number = self.number((*partition, known) if skips else partition, order)
        by = logic.choose([(known, number)], null(number.type)) if skips else number

        def of_frame(function: str, *args: Expr) -> Expr:
            made = AggregateCall(function, args, False, args[0].type)
            return self._over_frame(_Aggregate.of(made, window.frame, partition, order))

        if abs(window.place) == 1:
            return of_frame("min_by" if least else "max_by", value, by)
        first, last = of_frame("min", by), of_frame("max", by)
        at = call("add_int", (first, integer(window.place - 1)), BIGINT)
        return self._at_number(value, number, partition, known if skips else None, at, last, null(value.type))

    def _near(
        self,
        window: Window,
        frame: Between,
        over: Callable[[Expr], Expr],
        partition: tuple[Expr, ...],
        order: tuple[Sort, ...],
    ) -> Expr:
        """The value of one row of a frame of few rows: it is as many rows before or after the current row as a bound of
        the frame, or, if the frame begins before the partition or ends after it, counted from an end of that."""
        value, nothing = over(window.value), null(window.value.type)
        bound, far, place = frame.low, frame.high, window.place - 1
        if window.place < 0:
            bound, far, place = frame.high, frame.low, 0
        if bound + place > frame.high:
            return nothing
        there, beside = self._value_beside(value, bound + place, partition, order)
        branches = [(there, beside)]
        is_inside = bound >= 0 if window.place > 0 else bound <= 0
        if not is_inside:
            if place:
                begins, _ = self._value_beside(value, bound, partition, order)
                branches = [(begins, logic.choose(branches, nothing))]
            reach = far - place if window.place > 0 else far
            reached = reach >= 0 if window.place > 0 else reach <= 0
            test = TRUE if reached else self._value_beside(value, reach, partition, order)[0]
            branches.append((test, self._at_place(window, over, partition, order)))
        return logic.choose(branches, nothing)

    def _beside_known(
        self, window: Window, over: Callable[[Expr], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """LAG or LEAD over the rows where the value is not NULL."""
        assert window.shift is not None and window.default is not None
        value = over(window.value)
        known = call("is_not_null", (value,), BOOLEAN)
        number = self.number((*partition, known), order)
        before = AggregateCall("count", (value,) if value.nullable else (), False, BIGINT)
        frame = Frame(True, None, 0 if window.shift > 0 else -1)
        so_far = self._over_frame(_Aggregate.of(before, frame, partition, order))
        at = call("add_int", (so_far, integer(window.shift + (window.shift < 0))), BIGINT)
        return self._at_number(value, number, partition, known, at, None, over(window.default))

    def _at_number(
        self,
        value: Expr,
        number: Expr,
        partition: tuple[Expr, ...],
        known: Expr | None,
        at: Expr,
        last: Expr | None,
        default: Expr,
    ) -> Expr:
        """The value of the row of the partition with a number up to ``last``, among those where ``known`` is TRUE."""
        other = self._occurrence("at_number")
        on: list[Expr] = [equality(self._moved(one, other), one) for one in partition]
        on += [logic.compare("=", self._moved(number, other), at)]
        on += [] if known is None else [self._moved(known, other)]
        on += [] if last is None else [logic.compare("<=", at, last)]
        self.joined = replace(self.joined, left=(*self.joined.left, LeftJoin(Joined((other,)), tuple(on))))
        optional = dict.fromkeys((other.column(column).name for column in other.columns), True)
        there = with_nullability(self._moved(number, other), optional)
        found = with_nullability(self._moved(value, other), optional)
        return logic.choose([(call("is_not_null", (there,), BOOLEAN), found)], default)

    def _texts_in_order(self, made: AggregateCall, order: tuple[Sort, ...]) -> AggregateCall:
        """STRING_AGG without an order of its own, in the order of the window."""
        if made.gathering is None or made.gathering.separator is None or made.gathering.distinct:
            return made
        sorts = (*order, *(Sort(self.base.column(column), False, False) for column in self.base.columns))
        columns = (GatheredColumn(one.expr.type, one.descending, one.nulls_last) for one in sorts)
        gathering = replace(made.gathering, columns=(*columns, GatheredColumn(STRING)))
        text = made.args[-1]
        test = call("is_not_null", (text,), BOOLEAN)
        args = (logic.choose([(test, one.expr)], null(one.expr.type)) for one in sorts)
        return replace(made, args=(*args, text), gathering=gathering)

    def _ranked(self, window: Window, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """The number of a row, the rank of its place, or a value of these and of the number of rows."""
        rank_by, keys = window.rank, (*partition, *(one.expr for one in order))
        if rank_by == "row_number":
            return self.number(partition, order)
        if rank_by in ("rank", "percent_rank"):
            rank = self._join(self._by_places("rank", self.base, _listed(keys), partition, order), keys)
            return rank if rank_by == "rank" else _share(
                _less(rank, integer(1)), _less(self._count(None, partition, order), integer(1))
            )
        if rank_by == "cume_dist":
            through = self._count(Frame(False, None, 0), partition, order)
            return _share(through, self._count(None, partition, order))
        if rank_by == "ntile":
            return _tile(self.number(partition, order), self._count(None, partition, order), window.place)
        # The distinct places have no equal rows, so their numbers are dense ranks.
        places = self._distinct_places(keys)
        columns = tuple(map(places.column, places.columns))
        sorts = zip(order, columns[len(partition) :], strict=True)
        within = tuple(replace(one, expr=column) for one, column in sorts)
        view = self._by_places("row_number", places, _listed(columns), columns[: len(partition)], within)
        return self._join(view, keys)

    def _count(self, frame: Frame | None, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """The number of rows of a frame."""
        made = AggregateCall("count", (), False, BIGINT)
        return self._over_frame(_Aggregate.of(made, frame, partition, order))

    def _distinct_places(self, exprs: Sequence[Expr]) -> Source:
        """The distinct values of expressions over the rows."""
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

    def _join_view_of(self, select: Select, keys: Sequence[Expr], missing: Expr | None = None) -> Expr:
        """The last column of a view that has each of the keys once; ``missing`` for keys that it may lack."""
        if missing is not None:
            select = replace(select, items=(*select.items[:-1], Item("there", integer(1)), select.items[-1]))
        return self._join(self.views.internal_view(uniquely_named(Bound((select,)))), keys, missing)

    def _join(self, view: ViewDef, keys: Sequence[Expr], missing: Expr | None = None) -> Expr:
        """Join with a view by its first columns, NULL included; returns its last column, or a value for keys that the
        view lacks: its column before the last one is not NULL then."""
        source = replace(self.views.source_of(view), alias=self._alias("over"))
        columns = [source.column(column) for column in source.columns]
        same = tuple(equality(column, one) for column, one in zip(columns, keys, strict=False))
        if missing is None:
            self.joined = replace(
                self.joined, sources=(*self.joined.sources, source), conjuncts=(*self.joined.conjuncts, *same)
            )
            return columns[-1]
        self.joined = replace(self.joined, left=(*self.joined.left, LeftJoin(Joined((source,)), same)))
        there, found = (replace(one, nullable=True) for one in columns[-2:])
        return logic.choose([(call("is_not_null", (there,), BOOLEAN), found)], missing)


def _is_of_partition(window: Window) -> bool:
    """True if the value is that of one row of the partition, or NULL in rows before its place."""
    frame = window.frame
    if frame is None:
        return True
    first = window.place == 1 and not window.skips and (frame.high is None or frame.has_current)
    return frame.low is None and window.place > 0 and (first or _ends_here(frame))


def _ends_here(frame: Frame | None) -> bool:
    """True if the frame ends with the rows at the place of the current row."""
    return frame is not None and not frame.rows and frame.high == 0


def _is_of_place(window: Window) -> bool:
    """True if the value is that of one row at the place of the current row."""
    frame = window.frame
    if frame is None or frame.rows or window.skips or not frame.has_current:
        return False
    return (window.place == 1 and frame.low == 0) or (window.place < 0 and frame.high == 0)


def _is_constant(expr: Expr, within: frozenset[Hashable]) -> bool:
    """True if an expression has one value in each partition, by the expressions ``within`` PARTITION BY."""
    if isinstance(expr, Literal) or key(expr) in within:
        return True
    return not (isinstance(expr, Column) or may_fail(expr)) and all(_is_constant(arg, within) for arg in expr.args)


def _less(value: Expr, by: Expr) -> Expr:
    return call("sub_int", (value, by), BIGINT)


def _more(value: Expr, by: Expr) -> Expr:
    return call("add_int", (value, by), BIGINT)


def _unless_zero(divisor: Expr) -> Expr:
    """A divisor that is NULL instead of 0: numbers of rows may be 0 until the end of a version."""
    return logic.choose([(logic.compare("=", divisor, integer(0)), null(divisor.type))], divisor)


def _share(part: Expr, whole: Expr) -> Expr:
    """The quotient of two numbers of rows; 0 if the second one is 0."""
    made = arithmetic.divide(part, _unless_zero(cast(whole, DOUBLE)))
    return logic.first_of((made, Literal(0.0, DOUBLE)))


def _tile(number: Expr, rows: Expr, tiles: int) -> Expr:
    """The part of a row. All parts have the same number of rows, and each of the first ones one more."""

    def divided(value: Expr, by: Expr) -> Expr:
        return call("div_int", (value, _unless_zero(by)), BIGINT)

    before, size = _less(number, integer(1)), divided(rows, integer(tiles))
    larger = _less(rows, call("mul_int", (size, integer(tiles)), BIGINT))
    edge = call("mul_int", (larger, _more(size, integer(1))), BIGINT)
    in_larger = divided(before, _more(size, integer(1)))
    after = _more(larger, divided(_less(before, edge), size))
    part = logic.choose([(logic.compare("<", before, edge), in_larger)], after)
    return retyped(_more(logic.first_of((part, integer(0))), integer(1)), INT)


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
