"""Rewrites subqueries as joins.

A subquery that is a condition of WHERE becomes one more source of the join::

    x IN (SELECT y FROM r)                     JOIN (SELECT DISTINCT y FROM r) ON x = y
    EXISTS (SELECT 1 FROM r WHERE r.k = o.k)   JOIN (SELECT DISTINCT k FROM r) AS q ON k = o.k

Elsewhere, the value of a subquery becomes a column of a source that a LEFT JOIN adds::

    (SELECT MAX(y) FROM r WHERE k = o.k)       LEFT JOIN (SELECT k, MAX(y) AS v FROM r GROUP BY k) AS q ON k = o.k
    EXISTS (...)                               LEFT JOIN (SELECT DISTINCT k, 1 AS present ...) ON ..
    x < ANY (SELECT y ...)                     LEFT JOIN (SELECT k, COUNT(*), COUNT(y), MIN(y), MAX(y) ...) ON ..
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, islice, repeat

from sqlglot import exp

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.expr.ops import may_fail
from freshviews.records import dataclass
from freshviews.sql.blocks.aggregates import of_no_rows
from freshviews.sql.blocks.bound import Absent, AggregateCall, Bound, Item, Select, aggregate_ref, distinct_over
from freshviews.sql.blocks.enclosing import Names
from freshviews.sql.blocks.joins.dependent import as_bag, domain_of, marked_columns, values_of
from freshviews.sql.blocks.joins.lowering import Read, columns_kept, lowered
from freshviews.sql.blocks.joins.tree import Joined, LeftJoin, all_aliases, free_alias
from freshviews.sql.blocks.optional import equality
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.blocks.subqueries.correlation import (
    Pair,
    at_column,
    columns_over,
    grouped,
    is_distinct,
    is_one_row,
    is_unique,
    keys_of,
    pair_of,
    tested,
    with_aliases,
)
from freshviews.sql.blocks.subqueries.quantified import OPPOSITE, LookUp, any_of_rows, unknown_member
from freshviews.sql.blocks.subqueries.range_comparison import (
    VALUE,
    EqualColumns,
    Threshold,
    block_of_selection,
    is_one_source,
    over_view,
    threshold_of,
    weights_select,
)
from freshviews.sql.blocks.views import Views
from freshviews.sql.blocks.windows.binding import Window, window_of
from freshviews.sql.blocks.windows.rows import Numbers, joined_with
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import (
    FALSE,
    TRUE,
    VOID,
    Fault,
    call,
    integer,
    null,
    refined,
    replaced,
)
from freshviews.sql.expressions.cast import cast
from freshviews.sql.expressions.expression import COMPARISONS, Binder, is_subquery_value
from freshviews.sql.expressions.nulls import is_null_at, with_nullability
from freshviews.sql.names.marks import is_marked, marked, marks, unmarked
from freshviews.sql.names.scope import Source, alias_of, aliases_in
from freshviews.sql.text.clock import reads_clock
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.refuse import CLOCK_INSTEAD
from freshviews.sql.text.terms import follows
from freshviews.types import BIGINT, BOOLEAN, INT, STRING, SqlType

_PRESENT = Item("present", Literal(1, INT))
_ROWS = AggregateCall("count", (), False, BIGINT)
_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_NEGATED = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "ne": "eq"}


def _itself(expr: Expr) -> Expr:
    return expr


@dataclass(frozen=True)
class SubqueryValue:
    """A subquery as a value: its place, the bound query, and the comparison with its rows.

    ``sign``: the comparison of ANY and ALL, ``=`` for IN; empty for a scalar subquery and for EXISTS, which have no
    ``left``. ``all``: ALL. ``negated``: for ``<> ALL``, evaluated as NOT IN, and for ALL, evaluated as NOT ANY of the
    opposite.
    """

    node: Node
    bound: Bound
    left: Expr | None = None
    sign: str = ""
    negated: bool = False
    row: tuple[Expr, ...] = ()
    """The values of (a, b) IN."""

    @property
    def type(self) -> SqlType:
        return BOOLEAN if self.sign or isinstance(self.node, exp.Exists) else self.bound.columns[0].type


def _limit_of_aggregates(found: Threshold, values: Mapping[str, SubqueryValue]) -> Select | None:
    """The limit as the output of the one subquery that it is computed from, as in ``0.25 * (SELECT SUM(x) FROM r)``, if
    that has aggregates without GROUP BY; so no further view is needed. None for another limit."""
    limit = found.code_of_limit()
    named = columns_of(limit)
    asked = values.get(named[0]) if len(named) == 1 else None
    if found.group or asked is None or asked.sign or isinstance(asked.node, exp.Exists):
        return None
    select = asked.bound.selects[0]
    if len(asked.bound.selects) > 1 or select.kind != "global" or select.having is not None or select.limit is not None:
        return None
    (item,) = select.items
    limit = replaced(limit, lambda part: item.expr if isinstance(part, Column) else None)
    return None if any(map(is_marked, select.exprs)) else replace(select, items=(Item("limit", limit),))


@dataclass
class SubqueryBinder:
    """Binds the subqueries of one SELECT, and collects the sources and predicates that they become.

    NOT EXISTS adds a source of which no row may match. So does NOT IN, if neither side may be NULL.

    If a predicate is never TRUE for this NULL, the join becomes an inner join (``blocks.joins.tree``). A subquery may
    name columns of the enclosing query in its WHERE: see ``blocks.joins.dependent``.
    """

    text: SqlText
    views: Views
    query: Callable[[Node, Names], Bound]
    """Binds a subquery, given the names of the enclosing query."""
    names: Names
    joined: Joined
    never_null: frozenset[str] = frozenset()
    """Columns of FROM that the other terms prove not NULL."""
    known: tuple[Expr, ...] = ()
    """The other terms, without subqueries."""
    applied: tuple[Expr, ...] = ()
    """The other terms that hold for all rows of a source that ``joined`` now has."""
    read: Read = None
    """The columns that the SELECT mentions outside the current term."""
    rows: Source | None = None
    """The rows that window functions are computed over; None if they are not accepted here."""
    numbers: Numbers = field(default_factory=Numbers)
    """The numbers that these rows have so far."""
    around: tuple[Expr, ...] = ()
    """The columns of these rows that identify the row of the enclosing query to which they belong."""
    over: Callable[[Expr], Expr] = _itself
    """Maps an expression of the enclosing query to one over the sources of ``joined``."""
    made: list[str] = field(default_factory=list)
    """Aliases made for this SELECT: if ``joined`` is one side of a join, those of the other side too."""

    def bind(self, term: Node) -> None:
        """Bind one term of WHERE. Raises SqlError or UnsupportedSql with the place."""
        inner = term.this.unnest() if isinstance(term, exp.Not) else term
        if isinstance(inner, exp.Exists):
            self._exists(inner, negated=inner is not term)
        elif not isinstance(inner, exp.Query) and is_subquery_value(inner):
            self._quantified(inner, negated=inner is not term)
        elif all(isinstance(one, exp.Query) for one in _subqueries_in(term)) and (
            isinstance(term, _COMPARISONS) or any(map(reads_clock, _subqueries_in(term)))
        ):
            self._compare(term)
        else:
            self._keep(*logic.conjuncts_of(Binder(self.text, self.names, "WHERE", subquery=self.value).condition(term)))

    def _compare(self, term: Node) -> None:
        """A comparison with values of subqueries, as a selection of the rows of one source or a predicate."""
        asked: dict[Node, SubqueryValue] = {}
        values: dict[str, SubqueryValue] = {}

        def named(node: Node, bind: Callable[[Node], Expr]) -> Expr:
            found = asked[node] = self._ask(node, bind)
            name = f"{VALUE}{len(values)}"
            values[name] = found
            return Column(name, found.type, True)

        condition = Binder(self.text, self.names, "WHERE", subquery=named).condition(term)
        if any(map(reads_clock, _subqueries_in(term))):
            self.select_by_clock(condition, values)
            return
        found = self._threshold(condition, values)
        if found is not None:
            self._select(found, values)
            return
        binder = Binder(self.text, self.names, "WHERE", subquery=lambda node, bind: self.answer(asked[node]))
        self._keep(*logic.conjuncts_of(binder.condition(term)))

    def select_by_clock(self, condition: Expr, values: Mapping[str, SubqueryValue]) -> None:
        """Select rows by a condition over values of the clock. Raises UnsupportedSql if a term compares them with no
        value of one source."""
        terms = [part for one in logic.conjuncts_of(condition) for part in _as_orders(one)]
        for i, one in enumerate(terms, 1):
            found = self._threshold(one, values)
            if found is not None:
                self._select(found, values, {name for later in terms[i:] for name in columns_of(later)})
            elif not values.keys().isdisjoint(columns_of(one)):
                self._refuse_clock(next(values[name].node for name in columns_of(one) if name in values))
            else:
                self._keep(one)

    def _refuse_clock(self, node: Node) -> None:
        if reads_clock(node):
            raise self.text.unsupported(node, f"{self.text.of(node)} here", CLOCK_INSTEAD)

    def _threshold(self, condition: Expr, values: Mapping[str, SubqueryValue]) -> Threshold | None:
        """The selection that a comparison with values of subqueries makes."""
        bounds = {name: one.bound for name, one in values.items()}
        required = tuple(s for s in self.joined.sources if s.alias in self.joined.required)
        return threshold_of(condition, bounds, required, (*self.joined.conjuncts, *self.known))

    def _select(
        self, found: Threshold, values: Mapping[str, SubqueryValue], later: Collection[str] = ()
    ) -> None:
        """Replace a source by an internal view of its selected rows. ``later``: further columns that it needs."""
        source, weights = found.source, found.weights
        if weights is not None and not is_one_source(weights):
            view = self.views.source_of(self.views.internal_view(Bound((weights_select(weights),))))
            found = replace(found, weights=over_view(weights, view))
        limits = self._limits(found, values)
        kept = {*columns_kept(self.joined, self.read, self.views), *later}
        # Other predicates are tested before a row is stored, unless they may fail for an unselected row.
        own = tuple(
            one
            for one in self.known
            if aliases_in(one) == {source.alias} and not (is_marked(one) or may_fail(one) or one in self.applied)
        )
        self.applied += own
        columns, block = block_of_selection(found, limits, lambda column: column.name in kept, own)
        view = self.views.source_of(self.views.view_of(columns, (block,)))
        made = replace(view, alias=source.alias)
        sources = tuple(made if one is source else one for one in self.joined.sources)
        self.joined = replace(self.joined, sources=sources)

    def _limits(self, found: Threshold, values: Mapping[str, SubqueryValue]) -> Source:
        """An internal view of the limit of each group."""
        select = _limit_of_aggregates(found, values)
        if select is not None:
            return self.views.source_of(self.views.internal_view(Bound((select,))))
        joined = Joined()
        keys: list[Column] = []
        if found.group:
            items = tuple(Item(f"k{i}", column) for i, column in enumerate(found.group, 1))
            source = self._source(distinct_over(Select("bag", (found.source,), (), items)))
            keys = [source.column(column) for column in source.columns]
            joined = Joined((source,))
        equal = EqualColumns((*self.joined.conjuncts, *self.known))
        to = {one.name: column for one, column in zip(found.group, keys, strict=True)}

        def over(expr: Expr) -> Expr:
            def place(part: Expr) -> Expr | None:
                same = equal.on(part, found.source) if isinstance(part, Column) and part.name not in values else None
                return None if same is None else to[same.name]

            return replaced(expr, place)

        inner = replace(self, joined=joined, over=over)
        limit = over(found.code_of_limit())
        answers = {name: inner._answered(one) for name, one in values.items() if name in columns_of(limit)}
        limit = replaced(limit, lambda part: answers.get(part.name) if isinstance(part, Column) else None)
        made = inner.joined if inner.joined.sources else replace(inner.joined, sources=(self.views.one_row(),))
        flat = lowered(made, self.views, None)
        listed = (*(Item(f"k{i}", column) for i, column in enumerate(keys, 1)), Item("limit", limit))
        select = Select("bag", flat.sources, flat.conjuncts, listed, absent=flat.absent, optional=flat.optional)
        return self.views.source_of(self.views.internal_view(Bound((select,))))

    def _exists(self, node: exp.Exists, negated: bool) -> None:
        """EXISTS as a term: a semi-join, or an anti-join."""
        bound = self._query(node.this)
        if is_one_row(bound):
            self._keep(FALSE if negated else TRUE)
        elif negated:
            self._anti_join(self._bag(bound))
        else:
            self._semi_join(node.this, bound, None)

    def _quantified(self, node: Node, negated: bool) -> None:
        """IN, ANY or ALL as a term: semi- or anti-joins if equal values decide, else a predicate over the extremes."""
        binder = Binder(self.text, self.names, "WHERE", subquery=self.value)
        asked = self._ask(node, binder.bind_perhaps if follows(node) else binder.bind)
        if asked.row:
            matching = self._matching(asked, negated)
            if negated:
                self._anti_join(matching)
            else:
                self._semi_join(node.args["query"], Bound((matching,)), None)
            return
        assert asked.left is not None
        asked = replace(asked, left=refined(asked.left, self.never_null))
        negated = negated != asked.negated
        if is_one_row(asked.bound):
            found = self._compared(replace(asked, negated=False))
            self._keep(*logic.conjuncts_of(logic.negation(found) if negated else found))
        elif asked.sign != "=":
            self._keep(*logic.conjuncts_of(self._compared(asked, not negated)))
        elif negated:
            self._not_in(asked)
        else:
            self._semi_join(node, asked.bound, asked.left)

    def _not_in(self, asked: SubqueryValue) -> None:
        """NOT IN: no row has the value, no row is NULL, and if the value is NULL there is no row."""
        select, left = self._bag(asked.bound), asked.left
        assert left is not None
        value = select.items[0].expr
        terms = [self._equal(asked.node, marked(left), value)]
        terms += [call("is_null", (one,), BOOLEAN) for one in (value, marked(left)) if one.nullable]
        for term in terms:
            self._anti_join(replace(select, conjuncts=(*select.conjuncts, *logic.conjuncts_of(term))))

    def _equal(self, node: Node, left: Expr, right: Expr) -> Expr:
        try:
            return logic.compare("=", left, right)
        except Fault as fault:
            raise self.text.error(node, str(fault)) from None

    def _semi_join(self, query: Node, bound: Bound, value: Expr | None) -> None:
        """Join with the distinct values for which EXISTS is true, or with which IN compares a value."""
        if value is not None and is_distinct(bound):
            source = self._joined_with(bound.selects[0], ())
        else:
            select, pairs = self._decorrelated(self._bag(bound), kept=True)
            items = keys_of(pairs)
            items.append(_PRESENT if value is None else Item("v", select.items[0].expr))
            source = self._joined_with(distinct_over(columns_over(select, items)), pairs)
        if value is not None:
            self._keep(self._equal(query, value, source.column(source.columns[-1])))

    def _anti_join(self, select: Select) -> None:
        """Add a source of which no row may match: a table, or the distinct values of an internal view."""
        select, pairs = self._decorrelated(select)
        # An uncorrelated subquery is compared by a constant.
        owns = [pair.own for pair in pairs] or [Literal(1, INT)]
        others = [pair.other for pair in pairs] or [Literal(1, INT)]
        plain = len(select.sources) == 1 and not (select.absent or select.optional)
        if plain and self.views.is_positive(select.sources[0]):
            source, local = select.sources[0], select.conjuncts
            source = replace(source, alias=self._free_alias(source.alias))
        else:
            items = [Item(f"k{i}", own) for i, own in enumerate(owns, 1)]
            source, local = self._source(distinct_over(columns_over(select, items))), ()
            owns = [source.column(column) for column in source.columns]
        absent = Absent(source, local, tuple(zip(owns, others, strict=True)))
        self.joined = replace(self.joined, absent=(*self.joined.absent, absent))

    def _free_alias(self, wish: str) -> str:
        """An alias that no source and no absent source has."""
        self.made.append(free_alias(wish, [*all_aliases(self.joined), *self.made]))
        return self.made[-1]

    # Subqueries as values

    def value(self, node: Node, bind: Callable[[Node], Expr]) -> Expr:
        """The value of a subquery over the sources that it adds. ``bind`` binds the operand to compare it with."""
        return self.answer(self.ask(node, bind))

    def ask(self, node: Node, bind: Callable[[Node], Expr]) -> SubqueryValue | Window:
        """Bind a subquery or a window function that is a value. Raises SqlError for a subquery with several columns."""
        if isinstance(node, exp.Window):
            if self.rows is None:
                raise self.text.error(
                    node,
                    "a window function cannot stand here; write the window function in SELECT, ORDER BY or QUALIFY",
                )
            return window_of(self.text, node, bind)
        return self._ask(node, bind)

    def _ask(self, node: Node, bind: Callable[[Node], Expr]) -> SubqueryValue:
        if isinstance(node, exp.Exists):
            return SubqueryValue(node, self._query(node.this))
        if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple):
            row = tuple(map(bind, node.this.expressions))
            bound = self._query(node.args["query"], [value.type for value in row])
            if len(bound.columns) != len(row):
                what = f"IN compares a row of {len(row)} values with a subquery of equally many columns"
                raise self.text.error(node.args["query"], f"{what}, but this subquery has {len(bound.columns)}")
            return SubqueryValue(node, bound, sign="=", row=row)
        if isinstance(node, exp.In):
            left = bind(node.this)
            bound = self._one_column(node.args["query"], "IN takes a subquery", left.type)
            return SubqueryValue(node, bound, left, "=")
        if type(node) in COMPARISONS:
            sign, every = COMPARISONS[type(node)], isinstance(node.expression, exp.All)
            left = bind(node.this)
            bound = self._one_column(node.expression.this, "ANY and ALL take a subquery", left.type)
            return SubqueryValue(node, bound, left, OPPOSITE[sign] if every else sign, every)
        return SubqueryValue(node, self._one_column(node, "a value needs a subquery"))

    def _one_column(self, query: Node, what: str, like: SqlType = VOID) -> Bound:
        bound = self._query(query, (like,))
        if len(bound.columns) != 1:
            raise self.text.error(query, f"{what} of one column, but this subquery has {len(bound.columns)}")
        return bound

    def _query(self, node: Node, like: Sequence[SqlType] = ()) -> Bound:
        """Bind a subquery. NULL without a type gets the type in ``like``, or else STRING."""
        bound = self.query(node, self._own_names)
        if all(column.type != VOID for column in bound.columns):
            return bound
        types = [one if one != VOID else STRING for one in islice(chain(like, repeat(STRING)), len(bound.columns))]

        def typed(select: Select) -> Select:
            pairs = zip(select.items, types, strict=True)
            return replace(
                select,
                items=tuple(replace(i, expr=cast(i.expr, to)) if i.expr.type == VOID else i for i, to in pairs),
            )

        return replace(bound, selects=tuple(map(typed, bound.selects)), nullable=None)

    def answer(self, asked: SubqueryValue | Window) -> Expr:
        """The value of a subquery or a window function, as an expression over the sources that it adds."""
        self._refuse_clock(asked.node)
        return self._answered(asked)

    def _answered(self, asked: SubqueryValue | Window) -> Expr:
        if isinstance(asked, Window):
            assert self.rows is not None
            value, self.joined = joined_with(
                asked, self.rows, self.around, self.joined, self.views, self.over, self.numbers
            )
            # Row numbers are columns of a view of the rows, which replaces their source.
            alias = self.rows.alias
            self.rows = next(source for source in self.joined.sources if source.alias == alias)
            return value
        if isinstance(asked.node, exp.Exists):
            return TRUE if is_one_row(asked.bound) else self._has_row(self._bag(asked.bound))
        if asked.row:
            equal, possible = (self._matching(asked, nulls) for nulls in (False, True))
            true = self._has_row(equal)
            if equal == possible:
                return true
            return logic.choose([(true, TRUE), (self._has_row(possible), null(BOOLEAN))], FALSE)
        if asked.left is None:
            return self._scalar(asked)
        found = self._compared(asked)
        return logic.negation(found) if asked.negated else found

    def _has_row(self, select: Select, apart: tuple[Pair, ...] | None = None) -> Expr:
        """TRUE if a subquery has a row. ``apart``: its equalities with the enclosing query, if it is decorrelated."""
        select, pairs = self._decorrelated(select) if apart is None else (select, apart)
        keys = keys_of(pairs)
        present = self._looked_up(distinct_over(columns_over(select, [*keys, _PRESENT])), pairs)[-1]
        return call("is_not_null", (present,), BOOLEAN)

    def _matching(self, asked: SubqueryValue, nulls: bool) -> Select:
        """The rows of a subquery that equal a row of values; with ``nulls`` also those where NULL leaves it open."""
        select = self._bag(asked.bound)
        terms: list[Expr] = []
        for value, item in zip(asked.row, select.items, strict=True):
            own = refined(value, self.never_null)
            term = self._equal(asked.node, marked(own), item.expr)
            if nulls and term.nullable:
                unknown = [call("is_null", (side,), BOOLEAN) for side in (marked(own), item.expr) if side.nullable]
                term = logic.any_of([term, *unknown])
            terms += logic.conjuncts_of(term)
        return replace(select, conjuncts=(*select.conjuncts, *terms))

    def _compared(self, asked: SubqueryValue, wanted: bool | None = None) -> Expr:
        """``left sign ANY (subquery)``: TRUE if it is TRUE for some row, NULL if it is TRUE for none and NULL for some.

        ``wanted``: return a predicate that is TRUE where this is TRUE (if True) or FALSE (if False).
        """
        assert asked.left is not None
        left = self.over(asked.left)
        try:
            if is_one_row(asked.bound):
                return logic.compare(asked.sign, left, self._scalar(asked))
            select, pairs = self._decorrelated(self._bag(asked.bound))

            def look_up(made: Select) -> list[Expr]:
                return self._looked_up(made, pairs)[len(pairs) :]

            if asked.sign == "=":
                return self._is_member(select, pairs, left, look_up)
            return any_of_rows(select, pairs, left, asked.sign, look_up, wanted)
        except Fault as fault:
            raise self.text.error(asked.node, str(fault)) from None

    def _is_member(self, select: Select, pairs: tuple[Pair, ...], left: Expr, look_up: LookUp) -> Expr:
        """``left IN (subquery)``."""
        value = select.items[0].expr
        keys = keys_of(pairs)
        known = (call("is_not_null", (value,), BOOLEAN),) if value.nullable else ()
        matching = replace(select, conjuncts=(*select.conjuncts, *known))
        members = distinct_over(columns_over(matching, [*keys, Item("v", value), _PRESENT]))
        member = Column("", value.type, False)
        on = logic.compare("=", left, member)
        present = self._looked_up(members, pairs, lambda column: at_column(on, column))[-1]
        branches = [(call("is_not_null", (present,), BOOLEAN), TRUE)]
        if value.nullable and not left.nullable:
            nulls = replace(select, conjuncts=(*select.conjuncts, call("is_null", (value,), BOOLEAN)))
            branches.append((self._has_row(nulls, pairs), null(BOOLEAN)))
        elif left.nullable:
            branches.append((unknown_member(select, pairs, left, look_up), null(BOOLEAN)))
        return logic.choose(branches, FALSE) if len(branches) > 1 else branches[0][0]

    def _scalar(self, asked: SubqueryValue) -> Expr:
        """The value of the one row of a subquery; NULL if it has none."""
        node, bound = asked.node, asked.bound
        select = bound.selects[0]
        if len(bound.selects) > 1 or select.kind != "global":
            return self._only_row(self._bag(bound), node)
        if select.having is not None:
            value = logic.choose([(select.having, select.items[0].expr)], null(select.items[0].expr.type))
            select = replace(select, having=None, items=(Item("v", value),))
        empty = self.over(unmarked(of_no_rows(select.items[0].expr, select.aggregates)))
        select, pairs = self._decorrelated(select)
        value = select.items[0].expr
        if not pairs:
            source = self._joined_with(replace(select, items=(Item("v", value),)), ())
            return source.column(source.columns[0])
        made = grouped(select, pairs, select.aggregates, [Item("v", value), _PRESENT])
        found, present = self._looked_up(made, pairs)[-2:]
        if empty == null(empty.type):
            return found
        return logic.choose([(call("is_null", (present,), BOOLEAN), empty)], found)

    def _only_row(self, select: Select, node: Node) -> Expr:
        """The value of a subquery that may have several rows after a batch, which is then refused."""
        select, pairs = self._decorrelated(select)
        if is_unique(select, pairs, self.views):
            found = self._looked_up_row(select, pairs)
            if found is not None:
                return found
        value = select.items[0].expr
        one = Literal(1, INT)
        ends = (AggregateCall(which, (value, one), False, value.type) for which in ("min_by", "max_by"))
        calls = (_ROWS, *ends)
        rows, least, greatest = (aggregate_ref(i, one, bool(pairs)) for i, one in enumerate(calls))
        alone = logic.compare("=", call("only_value", (rows, integer(1)), BIGINT), integer(1))
        value = call("only_value", (least, greatest), value.type)
        branches = [(alone, value)]
        if not pairs:
            branches.insert(0, (logic.compare("=", rows, integer(0)), null(value.type)))
        made = grouped(select, pairs, calls, [Item(select.items[0].name, logic.choose(branches, null(value.type)))])
        if not pairs:
            source = self._joined_with(made, ())
            return source.column(source.columns[0])
        return self._looked_up(made, pairs)[-1]

    def _looked_up_row(self, select: Select, pairs: tuple[Pair, ...]) -> Expr | None:
        """The first item of the one row of a join, as an optional part; NULL without a row. None if no column shows
        whether there is a row."""
        select, pairs = with_aliases(select, pairs, self._free_alias)
        value = select.items[0].expr
        own = [pair.own for pair in pairs if pair.equality.op != "null_safe_eq"]
        columns = [source.column(column) for source in select.sources for column in source.columns]
        there = [one for one in (*own, *columns) if isinstance(one, Column) and (one in own or not one.nullable)]
        optional = {one.alias for one in select.optional}
        there = [one for one in there if alias_of(one.name) not in optional]
        if not is_null_at(value, lambda name: True):
            if not there:
                return None
            missing = call("is_null", (replace(there[0], nullable=True),), BOOLEAN)
            value = logic.choose([(missing, null(value.type))], value)
        right = Joined(
            tuple(source for source in select.sources if source.alias not in optional),
            select.conjuncts,
            absent=select.absent,
            left=tuple(
                LeftJoin(Joined((source,)), one.on)
                for one in select.optional
                for source in select.sources
                if source.alias == one.alias
            ),
        )
        on = tuple(replace(pair.equality, args=(pair.own, pair.other)) for pair in pairs)
        self.joined = replace(self.joined, left=(*self.joined.left, LeftJoin(right, on)))
        return with_nullability(value, dict.fromkeys(columns_of(value), True))

    def _looked_up(
        self, select: Select, pairs: tuple[Pair, ...], also: Callable[[Column], Expr] | None = None
    ) -> list[Expr]:
        """Join with an internal view by its keys, its first columns; returns the other columns, which are NULL without
        a row. ``also``: an equality of the column after the keys."""
        source = self._source(select)
        columns = [source.column(column) for column in source.columns]
        on = [pair.over(column) for pair, column in zip(pairs, columns, strict=False)]
        if also is not None:
            on.append(also(columns[len(pairs)]))
        joined = LeftJoin(Joined((source,)), tuple(on))
        self.joined = replace(self.joined, left=(*self.joined.left, joined))
        return [replace(column, nullable=True) for column in columns]

    def _source(self, select: Select) -> Source:
        made = self.views.source_of(self.views.internal_view(uniquely_named(Bound((select,)))))
        return replace(made, alias=self._free_alias("subquery_1"))

    # Correlation

    def _bag(self, bound: Bound) -> Select:
        """The subquery as one join: itself, or the rows of an internal view."""
        if len(bound.selects) == 1 and bound.selects[0].is_plain:
            return bound.selects[0]
        return as_bag(bound, self._own_names, self.views)

    @property
    def _own_names(self) -> Names:
        return replace(self.names, domain=self._domain)

    def _domain(self, columns: tuple[Expr, ...]) -> Select:
        """The distinct values of columns in the rows of the enclosing query."""
        return values_of(self.joined, tuple(map(self.over, columns)), self.names.around, self.views)

    def _decorrelated(self, select: Select, kept: bool = False) -> tuple[Select, tuple[Pair, ...]]:
        """The subquery without names of the enclosing query, and the equalities that tie it to a row of that query.

        If it names columns elsewhere than in equalities, it is joined with their distinct values. ``kept``: predicates
        over the enclosing query alone stay in it.
        """
        local, pairs = [], []
        for conjunct in select.conjuncts:
            around = marks(conjunct)
            pair = pair_of(conjunct, self.over)
            if not around:
                local.append(conjunct)
            elif kept and len(around) == len(columns_of(conjunct)):
                self._keep(self.over(unmarked(conjunct)))
            elif len(around) == len(columns_of(conjunct)):
                pairs.append(tested(self.over(unmarked(conjunct))))
            elif pair is None:
                return self._with_names(select)
            else:
                pairs.append(pair)
                if pair.equality.op != "null_safe_eq" and pair.own.nullable:
                    # Keep the NULL rejection of the equality; the SELECT list was bound with it.
                    local.append(call("is_not_null", (pair.own,), BOOLEAN))
        made = replace(select, conjuncts=tuple(local))
        return self._with_names(select) if any(map(is_marked, made.exprs)) else (made, tuple(pairs))

    def _with_names(self, select: Select) -> tuple[Select, tuple[Pair, ...]]:
        """The subquery joined with the distinct values of the columns of enclosing queries that it names."""
        columns = marked_columns(select.exprs)
        taken = [source.alias for source in (*select.sources, *(absent.source for absent in select.absent))]
        domain = domain_of(columns, self._own_names, self.views, taken)
        made = select.mapped(domain.over)
        pairs = []
        for name, own in domain.to.items():
            other = self.over(unmarked(columns[name]))
            pairs.append(Pair(own, other, equality(own, other)))
        return replace(made, sources=(*domain.sources, *made.sources)), tuple(pairs)

    def _joined_with(self, select: Select, pairs: tuple[Pair, ...]) -> Source:
        """Make the subquery a source of the join; its first columns are its sides of the pairs."""
        source = self._source(select)
        self.joined = replace(self.joined, sources=(*self.joined.sources, source))
        for pair, column in zip(pairs, source.columns, strict=False):
            self._keep(pair.over(source.column(column)))
        return source

    def _keep(self, *conjuncts: Expr) -> None:
        self.joined = replace(self.joined, conjuncts=(*self.joined.conjuncts, *conjuncts))


def _as_orders(condition: Expr) -> list[Expr]:
    """NOT of a comparison as the opposite comparison, and ``=`` as ``>=`` and ``<=``."""
    if isinstance(condition, Call) and condition.op == "not" and isinstance(condition.args[0], Call):
        inner = condition.args[0]
        condition = replace(inner, op=_NEGATED[inner.op]) if inner.op in _NEGATED else condition
    if isinstance(condition, Call) and condition.op == "eq":
        return [replace(condition, op="ge"), replace(condition, op="le")]
    return [condition]


def _subqueries_in(term: Node) -> Iterator[Node]:
    """The subqueries that are values in a term, except those inside of others."""
    ahead = [term]
    while ahead:
        node = ahead.pop()
        if is_subquery_value(node):
            yield node
        else:
            ahead += node.iter_expressions()
