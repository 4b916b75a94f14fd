"""Window functions, as joins with what groups of the rows come to.

The rows are those of one source. An aggregate over a whole partition is a view of the rows grouped by PARTITION BY,
joined back by equal values, NULL included::

    SUM(x) OVER (PARTITION BY p)             JOIN (SELECT p, SUM(x) AS v FROM t GROUP BY p) q ON q.p <=> t.p

With ORDER BY it is one of the rows up to the current one: each distinct place in the order is joined with the rows
that do not come after it. RANK counts the rows before a place, DENSE_RANK the places, and ROW_NUMBER the rows before a
row, where rows that are equal in ORDER BY are ordered by their other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.sql.blocks.aggregates import Collector, is_aggregate
from freshviews.sql.blocks.bound import AggregateCall, Bound, Item, Select, Sort, aggregate_ref, distinct_over
from freshviews.sql.blocks.joins.lowering import lowered
from freshviews.sql.blocks.joins.tree import Joined, LeftJoin, free_alias
from freshviews.sql.blocks.optional import equality
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, integer, renamed
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.names.scope import Source, alias_of, name_of
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import BIGINT, BOOLEAN, INT, SqlType

_RANKS = ("rank", "dense_rank", "row_number")
_ROWS = AggregateCall("count", (), False, BIGINT)
_INSTEAD = (
    "RANK, DENSE_RANK, ROW_NUMBER and aggregates are accepted, over the whole partition or, with ORDER BY, up to the "
    "current row and those equal to it"
)


@dataclass(frozen=True)
class Window:
    """A window function.

    ``rank``: one of RANK, DENSE_RANK and ROW_NUMBER; else ``value`` is an expression over references to ``calls``.
    ``order``: empty where it is over the whole partition.
    """

    node: Node
    partition: tuple[Expr, ...]
    order: tuple[Sort, ...]
    rank: str
    value: Expr
    calls: tuple[AggregateCall, ...]

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
    whole = _is_whole(text, spec, bool(order))
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
    return Window(node, partition, () if whole else order, "", value, tuple(collector.calls))


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


def _is_whole(text: SqlText, spec: exp.Window, ordered: bool) -> bool:
    """True for all rows of the partition, False for those up to the current one."""
    frame = spec.args.get("spec")
    if frame is None:
        return not ordered
    start, end = (str(frame.args.get(one)) for one in ("start", "end"))
    sides = frame.args.get("start_side"), frame.args.get("end_side")
    if start == "UNBOUNDED" and end == "UNBOUNDED" and sides == ("PRECEDING", "FOLLOWING"):
        return True
    running = start == "UNBOUNDED" and end == "CURRENT ROW" and sides[0] == "PRECEDING"
    if running and frame.args.get("kind") == "RANGE" and ordered:
        return False
    raise text.unsupported(spec, f"the frame {text.of(frame)}", _INSTEAD)


def joined_with(
    window: Window, base: Source, joined: Joined, views: Views, over: Callable[[Expr], Expr]
) -> tuple[Expr, Joined]:
    """The value of a window function over the rows of a source, and the join that has it.

    ``over``: what its expressions are over the source.
    """
    return _Rows(base, views, joined).value(window, over)


def first_rows(
    rows: Select, partition: tuple[Expr, ...], order: tuple[Sort, ...], first: int, last: int, views: Views
) -> Select:
    """The rows of a SELECT over one source whose numbers, in an order within partitions, are from ``first`` to
    ``last``."""
    (base,) = rows.sources
    window = Window(exp.Null(), partition, order, "row_number", Literal(1, INT), ())
    number, joined = joined_with(window, base, Joined((base,)), views, lambda expr: expr)
    within = (logic.compare(">=", number, Literal(first, INT)), logic.compare("<=", number, Literal(last, INT)))
    flat = lowered(replace(joined, conjuncts=(*joined.conjuncts, *within)), views, None)
    return replace(rows, sources=flat.sources, conjuncts=(*rows.conjuncts, *flat.conjuncts), optional=flat.optional)


@dataclass
class _Rows:
    base: Source
    views: Views
    joined: Joined

    def value(self, window: Window, over: Callable[[Expr], Expr]) -> tuple[Expr, Joined]:
        partition = tuple(over(one) for one in window.partition if not isinstance(over(one), Literal))
        order = tuple(replace(one, expr=over(one.expr)) for one in window.order)
        order = tuple(one for one in order if not isinstance(one.expr, Literal))
        calls = tuple(replace(one, args=tuple(map(over, one.args))) for one in window.calls)
        if window.rank:
            return self._ranked(window, partition, order), self.joined
        return self._aggregated(window, calls, partition, order), self.joined

    def _aggregated(
        self, window: Window, calls: tuple[AggregateCall, ...], partition: tuple[Expr, ...], order: tuple[Sort, ...]
    ) -> Expr:
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

    def _ranked(self, window: Window, partition: tuple[Expr, ...], order: tuple[Sort, ...]) -> Expr:
        """One more than the number of rows, or places, before."""
        again = self._again
        if window.rank == "row_number":
            named = {one.name for one in (*partition, *(sort.expr for sort in order)) if isinstance(one, Column)}
            rest = [self.base.column(column) for column in self.base.columns]
            order = (*order, *(Sort(one, False, False) for one in rest if one.name not in named))
        keys = (*partition, *(one.expr for one in order))
        places = self._places(partition, order)
        columns = [places.column(column) for column in places.columns]
        other = self._other
        if window.rank == "dense_rank":
            other = replace(self._places(partition, order), alias=self._alias("places_before"))
            before: list[Expr] = [other.column(column) for column in other.columns]
            parts, sorts = before[: len(partition)], before[len(partition) :]
            compared = tuple(replace(one, expr=expr) for one, expr in zip(order, sorts, strict=True))
            test = _before(compared, columns[len(partition) :])
        else:
            parts = [again(one) for one in partition]
            test = _before(tuple(replace(one, expr=again(one.expr)) for one in order), columns[len(partition) :])
        same = [equality(column, part) for column, part in zip(columns, parts, strict=False)]
        rows = Select("bag", (places, other), (*same, *logic.conjuncts_of(test)), ())
        count = Item("before", aggregate_ref(0, _ROWS, True))
        found = self._looked_up(_grouped(rows, columns, (count,), (_ROWS,)), keys)
        rank = call("add_int", (logic.first_of((found, integer(0))), integer(1)), BIGINT)
        if window.rank == "row_number":
            equal = Item("equal_rows", aggregate_ref(0, _ROWS, True))
            alone = _grouped(Select("bag", (self.base,), (), ()), keys, (equal,), (_ROWS,))
            rows_here = self._joined(alone, keys)
            once = logic.compare("=", call("only_value", (rows_here, integer(1)), BIGINT), integer(1))
            rank = logic.choose([(once, rank)], rank)
        return call("check_range", (rank, integer(-(2**31)), integer(2**31 - 1)), INT)

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

    def _source(self, select: Select) -> Source:
        made = self.views.source_of(self.views.internal_view(uniquely_named(Bound((select,)))))
        return replace(made, alias=self._alias("over"))

    def _joined(self, select: Select, keys: Sequence[Expr]) -> Expr:
        """The last column of a view that has each of the keys once."""
        source = self._source(select)
        columns = [source.column(column) for column in source.columns]
        same = (equality(column, one) for column, one in zip(columns, keys, strict=False))
        self.joined = replace(
            self.joined, sources=(*self.joined.sources, source), conjuncts=(*self.joined.conjuncts, *same)
        )
        return columns[-1]

    def _looked_up(self, select: Select, keys: Sequence[Expr]) -> Expr:
        """The last column of a view that has a key at most once; NULL where it does not have it."""
        source = self._source(select)
        columns = [source.column(column) for column in source.columns]
        on = tuple(equality(column, one) for column, one in zip(columns, keys, strict=False))
        self.joined = replace(self.joined, left=(*self.joined.left, LeftJoin(Joined((source,)), on)))
        return replace(columns[-1], nullable=True)


def _grouped(
    rows: Select, keys: Sequence[Expr], items: tuple[Item, ...], calls: tuple[AggregateCall, ...]
) -> Select:
    """Aggregates of rows by keys, which come first."""
    names = (name_of(one.name) if isinstance(one, Column) else f"k{i}" for i, one in enumerate(keys, 1))
    bag = replace(rows, items=tuple(Item(name, one) for name, one in zip(names, keys, strict=True)))
    made = distinct_over(bag)
    return replace(made, kind="groups" if keys else "global", items=(*made.items, *items), aggregates=calls)


def _not_after(order: Sequence[Sort], places: Sequence[Expr], again: Callable[[Expr], Expr]) -> Expr:
    """True for a row that comes before a place, or at it."""
    moved = tuple(replace(one, expr=again(one.expr)) for one in order)
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
