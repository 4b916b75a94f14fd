"""Window functions, as joins with what groups of the rows come to.

The rows are those of one source. An aggregate over a whole partition is a view of the rows grouped by PARTITION BY,
joined back by equal values, NULL included::

    SUM(x) OVER (PARTITION BY p)             JOIN (SELECT p, SUM(x) AS v FROM t GROUP BY p) q ON q.p <=> t.p

With ORDER BY it is one of the rows up to the current one: each distinct place in the order is joined with the rows
that do not come after it. RANK counts the rows before a place, DENSE_RANK the places, and ROW_NUMBER the rows before a
row, where rows that are equal in ORDER BY are ordered by their other columns. LAG, LEAD, FIRST_VALUE and frames of a
number of rows look rows up by these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from freshviews.catalog.definitions import ViewDef
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import EVERY
from freshviews.sql.blocks.aggregates import Collector, is_aggregate
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
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Fault, call, integer, nodes_of, null, renamed, replaced, retyped
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.expressions.nulls import with_nullability
from freshviews.sql.names.scope import Source, alias_of, name_of
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import BIGINT, BOOLEAN, INT, STRING, SqlType

_RANKS = ("rank", "dense_rank", "row_number")
_INSTEAD = (
    "RANK, DENSE_RANK, ROW_NUMBER, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE and aggregates are accepted, these "
    "over the whole partition, up to the current row, or over ROWS BETWEEN ... that contain it"
)
_SHIFTS = {"lag": -1, "lead": 1}
_ENDS = ("first_value", "last_value", "nth_value")
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


@dataclass(frozen=True)
class Window:
    """A window function.

    ``rank``: one of RANK, DENSE_RANK and ROW_NUMBER; else ``value`` is an expression over references to ``calls``, or,
    of the row ``shift`` rows after the current one, or of row number ``place`` of the partition. ``order``: empty where
    it is over the whole partition. ``frame``: the rows of ROWS BETWEEN, relative to the current one; None for no
    bound.
    """

    node: Node
    partition: tuple[Expr, ...]
    order: tuple[Sort, ...]
    rank: str
    value: Expr
    calls: tuple[AggregateCall, ...]
    frame: tuple[int | None, int | None] | None = None
    shift: int = 0
    place: int = 0
    default: Expr | None = None

    @property
    def type(self) -> SqlType:
        return self.value.type


def window_of(text: SqlText, node: exp.Window, bind: Callable[[Node], Expr]) -> Window:
    """Bind a window function. Raises SqlError or UnsupportedSql with the place."""
    spec = _spec(text, node)
    partition = tuple(map(bind, spec.args.get("partition_by") or ()))
    order = tuple(
        Sort(bind(one.this), bool(one.args.get("desc")), not one.args.get("nulls_first"))
        for one in (spec.args["order"].expressions if spec.args.get("order") is not None else ())
    )
    inner = node.this.this if isinstance(node.this, exp.Filter) else node.this
    name = inner.name.lower()
    if name in _SHIFTS and isinstance(node.this, exp.Anonymous):
        return _shifted(text, node, bind, partition, order)
    if name in _ENDS and isinstance(node.this, exp.Anonymous):
        return _at_place(text, node, bind, partition, order)
    whole, frame = _frame(text, spec, bool(order))
    if name in _RANKS and isinstance(node.this, exp.Anonymous):
        if inner.expressions:
            raise text.error(node, f"{name.upper()} takes no arguments")
        if not order:
            raise text.error(node, f"{name.upper()} ranks rows by an order; write OVER (ORDER BY ...)")
        of = INT
        return Window(node, partition, order, name, Literal(1, of), ())
    if not is_aggregate(inner) or any(isinstance(one, exp.Distinct) for one in inner.expressions):
        distinct = " (DISTINCT ...)" if is_aggregate(inner) else ""
        raise text.unsupported(node, f"{inner.name.upper()}{distinct} OVER", _INSTEAD)
    collector = Collector(Binder(text, _unnamed, "OVER", group=bind), bool(partition or order), _ungrouped)
    value = collector.bind(node.this)
    return Window(node, partition, () if whole else order, "", value, tuple(collector.calls), frame)


def _shifted(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """LAG or LEAD."""
    name = node.this.name.lower()
    arguments = _arguments(text, node, 1, 3)
    if _spec(text, node).args.get("spec") is not None:
        raise text.unsupported(node, f"a frame of {name.upper()}", "leave it out")
    steps = _number_of_rows(text, node, arguments[1], bind) if len(arguments) > 1 else 1
    value = bind(arguments[0])
    default: Expr = null(value.type)
    if len(arguments) > 2:
        try:
            value, default, _ = logic.alike([value, bind(arguments[2])], name.upper())
        except Fault as fault:
            raise text.error(node, str(fault)) from None
    return Window(node, partition, order, "", value, (), shift=_SHIFTS[name] * steps, default=default)


def _at_place(
    text: SqlText, node: exp.Window, bind: Callable[[Node], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
) -> Window:
    """FIRST_VALUE, LAST_VALUE or NTH_VALUE: the value of one row of the partition, counted from its end for LAST_VALUE.
    """
    name = node.this.name.lower()
    arguments = _arguments(text, node, *((2, 2) if name == "nth_value" else (1, 1)))
    spec = _spec(text, node)
    frame = spec.args.get("spec")
    low, high = (_FIRST, 0) if frame is None else (_bound(frame, "start"), _bound(frame, "end"))
    if low != _FIRST or high is None or high < 0 or (high != _LAST and name != "first_value"):
        what = f"{name.upper()} over {'a frame that ends at the current row' if frame is None else text.of(frame)}"
        raise text.unsupported(node, what, f"write ORDER BY ... {_WHOLE}")
    place = _number_of_rows(text, node, arguments[1], bind) if name == "nth_value" else 1
    value = bind(arguments[0])
    made = Window(node, partition, order, "", value, (), place=place, default=null(value.type))
    return replace(made, place=-1) if name == "last_value" else made


def _arguments(text: SqlText, node: exp.Window, least: int, most: int) -> list[Node]:
    """The arguments of a function about an order of rows."""
    name, arguments = node.this.name.upper(), node.this.expressions
    if not least <= len(arguments) <= most:
        raise text.error(node, f"{name} takes {least if least == most else f'{least} to {most}'} arguments")
    if _spec(text, node).args.get("order") is None:
        raise text.error(node, f"{name} is about an order of rows; write OVER (ORDER BY ...)")
    return list(arguments)


def _number_of_rows(text: SqlText, node: exp.Window, argument: Node, bind: Callable[[Node], Expr]) -> int:
    value = bind(argument)
    if not isinstance(value, Literal) or not isinstance(value.value, int) or value.value < 1:
        raise text.error(argument, f"the second argument of {node.this.name.upper()} is a number of rows, 1 or more")
    return int(value.value)


def is_numbered(node: exp.Window) -> bool:
    """True if a window function needs the numbers of rows, and so all columns, which tell rows apart."""
    by_rows = any(one.args.get("kind") == "ROWS" for one in node.find_all(exp.WindowSpec)) or node.args.get("alias")
    return bool(by_rows) or node.this.name.lower() in ("row_number", *_SHIFTS, *_ENDS)


def _unnamed(column: exp.Column) -> Expr:
    raise AssertionError(column)


def _ungrouped(node: Node) -> Expr:
    raise AssertionError(node)


def _spec(text: SqlText, node: exp.Window) -> exp.Window:
    """The window that OVER describes or names."""
    name = node.args.get("alias")
    if name is None:
        return node
    select = node.parent_select
    known = (select.args.get("windows") or ()) if select is not None else ()
    found: exp.Window | None = next((one for one in known if one.this.name.lower() == name.name.lower()), None)
    if found is None:
        raise text.error(name, f"unknown window {name.name}; WINDOW {name.name} AS (...) defines it")
    return found


def _frame(text: SqlText, spec: exp.Window, ordered: bool) -> tuple[bool, tuple[int | None, int | None] | None]:
    """True for all rows of the partition, and the bounds of ROWS BETWEEN; without these, the rows up to the current one
    and those equal to it."""
    frame = spec.args.get("spec")
    if frame is None:
        return not ordered, None
    bounds = [_bound(frame, "start"), _bound(frame, "end")]
    if bounds == [_FIRST, _LAST]:
        return True, None
    if frame.args.get("kind") == "RANGE" and bounds == [_FIRST, 0] and ordered:
        return False, None
    low, high = bounds
    if frame.args.get("kind") != "ROWS" or not ordered or low is None or high is None or not low <= 0 <= high:
        raise text.unsupported(spec, f"the frame {text.of(frame)}", _INSTEAD)
    return False, (None if low == _FIRST else low, None if high == _LAST else high)


_BEYOND = 2**62
"""Beyond the codes of all types but BIGINT, doubles and strings."""

_LAST = 2**31
_FIRST = -_LAST


def _bound(frame: Node, which: str) -> int | None:
    """A bound of a frame as a number of rows after the current one; None if it is another one."""
    value, side = frame.args.get(which), frame.args.get(f"{which}_side")
    sign = -1 if side == "PRECEDING" else 1
    if value is None or value == "CURRENT ROW":
        return 0
    if value == "UNBOUNDED":
        return sign * _LAST
    whole = isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit()
    return sign * min(int(value.name), _LAST - 1) if whole else None


def joined_with(
    window: Window,
    base: Source,
    around: tuple[Expr, ...],
    joined: Joined,
    views: Views,
    over: Callable[[Expr], Expr],
) -> tuple[Expr, Joined]:
    """The value of a window function over the rows of a source, and the join that has it.

    ``around``: columns of the source that each partition has one value of. ``over``: what the expressions of the window
    are over the source.
    """
    return _Rows(base, views, joined).value(window, around, over)


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
    base: Source
    views: Views
    joined: Joined

    def value(
        self, window: Window, around: tuple[Expr, ...], over: Callable[[Expr], Expr]
    ) -> tuple[Expr, Joined]:
        partition = (*around, *(over(one) for one in window.partition if not isinstance(over(one), Literal)))
        order = tuple(replace(one, expr=over(one.expr)) for one in window.order)
        order = tuple(one for one in order if not isinstance(one.expr, Literal))
        calls = tuple(replace(one, args=tuple(map(over, one.args))) for one in window.calls)
        if window.shift:
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
        order = tuple(map(_without_null, order))
        keys = (*partition, *(one.expr for one in order))
        item = Item("v", window.value)
        if not order:
            select = _grouped(Select("bag", (self.base,), (), ()), keys, (item,), calls)
            return self._joined(select, keys)
        places, again = self._places(partition, order), self._again
        columns = [places.column(column) for column in places.columns]
        test = _not_after(order, columns[len(partition) :], again)
        same = [equality(column, again(one)) for column, one in zip(columns, partition, strict=False)]
        rows = Select("bag", (places, self._other), (*same, *logic.conjuncts_of(test)), ())
        moved = tuple(replace(one, args=tuple(map(again, one.args))) for one in calls)
        return self._joined(_grouped(rows, columns, (item,), moved), keys)

    def _number(self, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """The numbers of the rows. The rows are then those of a view that has them."""
        limit = Limited(order, EVERY, 0, partition, "row_number")
        self._replace((Item("row_number", number_ref()),), limit)
        return self.base.column(self.base.columns[-1])

    def _replace(self, items: tuple[Item, ...], limit: Limited) -> None:
        """Replace the rows by those of a view that has further columns, by the places of rows in an order."""
        select = Select("bag", (self.base,), (), (*self._all(), *items), limit=limit)
        view = self.views.internal_view(uniquely_named(Bound((select,))))
        made = replace(self.views.source_of(view), alias=self.base.alias)
        sources = tuple(made if one.alias == made.alias else one for one in self.joined.sources)
        self.joined, self.base = replace(self.joined, sources=sources), made

    def _all(self) -> tuple[Item, ...]:
        """All columns of the rows."""
        return tuple(Item(column.name, self.base.column(column)) for column in self.base.columns)

    def _by_places(
        self, kind: str, rows: Source, items: tuple[Item, ...], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> ViewDef:
        """A view of rows with their numbers or ranks, which are the last column."""
        limit = Limited(order, EVERY, 0, partition, kind)
        select = Select("bag", (rows,), (), (*items, Item(kind, number_ref())), limit=limit)
        return self.views.internal_view(uniquely_named(Bound((select,))))

    def _numbered(self, alias: str) -> Source:
        """Another occurrence of the rows."""
        return replace(self.base, alias=self._alias(alias))

    def _over(self, expr: Expr, other: Source) -> Expr:
        """An expression over the rows, over another occurrence of them."""

        def to(name: str) -> str:
            return other.alias + name.removeprefix(self.base.alias) if alias_of(name) == self.base.alias else name

        return renamed(expr, to)

    def _shifted(
        self, window: Window, over: Callable[[Expr], Expr], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """The value of a row that is some rows before or after. The rows are then those of a view that has, for each,
        the columns of that row."""
        assert window.default is not None
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
        if window.place < 0:
            rest = (Sort(self.base.column(column), False, False) for column in self.base.columns)
            order = tuple(Sort(o.expr, not o.descending, not o.nulls_last) for o in (*order, *rest))
        view = self._by_places("row_number", self.base, self._all(), partition, order)
        other = replace(self.views.source_of(view), alias=self._alias("at_place"))
        own = other.column(other.columns[-1])
        same = [equality(self._over(one, other), one) for one in partition]
        at = logic.compare("=", own, integer(abs(window.place)))
        self.joined = replace(
            self.joined, left=(*self.joined.left, LeftJoin(Joined((other,)), (*same, *logic.conjuncts_of(at))))
        )
        names = [other.column(column).name for column in other.columns]
        value = with_nullability(self._over(over(window.value), other), dict.fromkeys(names, True))
        there = call("is_not_null", (replace(own, nullable=True),), BOOLEAN)
        return logic.choose([(there, value)], over(window.default))

    def _framed(
        self, window: Window, calls: tuple[AggregateCall, ...], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
        """An aggregate over a number of rows before and after."""
        assert window.frame is not None
        own = self._number(partition, order)
        row, other = self._numbered("row_of_frame"), self._numbered("frame")
        number, at = row.column(row.columns[-1]), other.column(other.columns[-1])
        keys = [*(self._over(one, row) for one in partition), number]
        tests: list[Expr] = [
            equality(self._over(one, other), place) for one, place in zip(partition, keys, strict=False)
        ]
        for sign, bound in zip((">=", "<="), window.frame, strict=True):
            if bound is not None:
                tests.append(logic.compare(sign, at, call("add_int", (number, integer(bound)), BIGINT)))
        moved = tuple(replace(o, args=tuple(self._over(a, other) for a in o.args)) for o in calls)
        made = _grouped(Select("bag", (row, other), tuple(tests), ()), keys, (Item("v", window.value),), moved)
        return self._joined(made, (*partition, own))

    def _ranked(self, rank_by: str, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """One more than the number of rows, or places, before."""
        if rank_by == "row_number":
            return self._number(partition, order)
        keys = (*partition, *(one.expr for one in order))
        rows, places = self.base, keys
        if rank_by == "dense_rank":
            rows = self._places(partition, order)
            places = tuple(map(rows.column, rows.columns))
            rank_by = "row_number"
        parts, sorts = places[: len(partition)], places[len(partition) :]
        order = tuple(replace(one, expr=expr) for one, expr in zip(order, sorts, strict=True))
        items = tuple(Item(f"k{i}", one) for i, one in enumerate(places, 1))
        return self._joined_view(self._by_places(rank_by, rows, items, parts, order), keys)

    def _places(self, partition: Sequence[Expr], order: Sequence[Sort]) -> Source:
        """The distinct places in the order."""
        exprs = (*partition, *(one.expr for one in order))
        items = tuple(Item(f"k{i}", expr) for i, expr in enumerate(exprs, 1))
        values = distinct_over(Select("bag", (self.base,), (), items))
        # Equal expressions are one group, and still a column each.
        return replace(self.views.domain_source(values), alias=self._alias("places"))

    @property
    def _other(self) -> Source:
        return replace(self.base, alias=f"{self.base.alias}_again")

    def _again(self, expr: Expr) -> Expr:
        """The expression over another occurrence of the rows."""
        own, other = self.base.alias, self._other.alias

        def to(name: str) -> str:
            return other + name.removeprefix(own) if alias_of(name) == own else name

        return renamed(expr, to)

    def _alias(self, wish: str) -> str:
        taken = [*self.joined.aliases, *(one.source.alias for one in self.joined.absent), self._other.alias]
        return free_alias(wish, taken)

    def _joined(self, select: Select, keys: Sequence[Expr]) -> Expr:
        """The last column of a view that has each of the keys once."""
        return self._joined_view(self.views.internal_view(uniquely_named(Bound((select,)))), keys)

    def _joined_view(self, view: ViewDef, keys: Sequence[Expr]) -> Expr:
        source = replace(self.views.source_of(view), alias=self._alias("over"))
        columns = [source.column(column) for column in source.columns]
        same = (equality(column, one) for column, one in zip(columns, keys, strict=False))
        self.joined = replace(
            self.joined, sources=(*self.joined.sources, source), conjuncts=(*self.joined.conjuncts, *same)
        )
        return columns[-1]


def _grouped(
    rows: Select, keys: Sequence[Expr], items: tuple[Item, ...], calls: tuple[AggregateCall, ...]
) -> Select:
    """Aggregates of rows by keys, which come first."""
    names = (name_of(one.name) if isinstance(one, Column) else f"k{i}" for i, one in enumerate(keys, 1))
    bag = replace(rows, items=tuple(Item(name, one) for name, one in zip(names, keys, strict=True)))
    made = distinct_over(bag)
    return replace(made, kind="groups" if keys else "global", items=(*made.items, *items), aggregates=calls)


def _without_null(sort: Sort) -> Sort:
    """The same order with a number in the place of NULL, where the codes of a type leave one free."""
    expr = sort.expr
    if not expr.nullable or expr.type == BIGINT or expr.type == STRING or expr.type.is_float:
        return sort
    # NULL first where the order rises, or last where it falls, is the least value of all.
    beyond = integer(_BEYOND if sort.nulls_last != sort.descending else -_BEYOND)
    return replace(sort, expr=logic.first_of((retyped(expr, BIGINT), beyond)))


def _not_after(order: Sequence[Sort], places: Sequence[Expr], again: Callable[[Expr], Expr]) -> Expr:
    """True for a row that comes before a place, or at it."""
    moved = tuple(replace(one, expr=again(one.expr)) for one in order)
    if len(order) == 1 and not order[0].expr.nullable:
        # A range, which an ordered index answers.
        return logic.compare(">=" if order[0].descending else "<=", moved[0].expr, places[0])
    equal = [logic.null_safe_equal(one.expr, place) for one, place in zip(moved, places, strict=True)]
    return logic.either(_before(moved, places), logic.all_of(equal))


def _before(order: Sequence[Sort], places: Sequence[Expr]) -> Expr:
    """True for a row that comes before a place; FALSE or NULL else."""
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
