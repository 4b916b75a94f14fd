"""Subqueries in WHERE, as joins.

A term of WHERE becomes a source beside those of FROM, with at most one row for each row of the join, and predicates
over it::

    x IN (SELECT y FROM r)                     JOIN (SELECT DISTINCT y FROM r) ON x = y
    EXISTS (SELECT 1 FROM r WHERE r.k = o.k)   JOIN (SELECT DISTINCT k FROM r) AS q ON k = o.k
    x < (SELECT MAX(y) FROM r WHERE k = o.k)   JOIN (SELECT k, MAX(y) AS v FROM r GROUP BY k) AS q ON k = o.k AND x < v

NOT EXISTS is no join: it names a source of which no row may match. NOT IN adds the equality of the values, and is
accepted where neither side may be NULL; with a NULL it would not be TRUE.

A subquery may name a column of the enclosing query in its WHERE only, on one side of an equality. The other side
becomes a column of the source. Until then columns of the enclosing query are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from freshviews.catalog.catalog import same
from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.sql.blocks.block import Views
from freshviews.sql.blocks.bound import Absent, Bound, Item, Select, distinct_over, group_ref
from freshviews.sql.blocks.outer_join import Joined
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Fault, call, key, rejects_null, renamed, sharpened
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.names.scope import Scope, Source, name_of
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import BOOLEAN, INT

_OUTER = "\x1eouter"
_EQUALITIES = ("eq", "eq_float", "null_safe_eq")

@dataclass(frozen=True)
class Names:
    """Name resolution in a WHERE: names of its FROM first, then marked names of the enclosing query."""

    text: SqlText
    scope: Scope
    around: Names | None = None

    def __call__(self, column: exp.Column) -> Expr:
        """Resolve a name. Raises SqlError if it is unknown or ambiguous."""
        if self.around is None or self.scope.has(column):
            return self.scope.resolve(self.text, column)
        if self.around.has(column):
            return renamed(self.around(column), lambda name: _OUTER + name)
        return self.scope.resolve(self.text, column, self.around.known(column))

    def has(self, column: exp.Column) -> bool:
        """True if a name belongs to one of these queries or their tables."""
        return self.scope.has(column) or (self.around is not None and self.around.has(column))

    def known(self, column: exp.Column) -> tuple[str, ...]:
        """Candidates for a misspelt name: tables if it is qualified, else columns."""
        further = () if self.around is None else self.around.known(column)
        return (*self.scope.known(column), *further)


def terms_of(condition: Node) -> Iterator[Node]:
    """The terms that AND joins."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        yield from terms_of(inner.this)
        yield from terms_of(inner.expression)
    else:
        yield inner


def has_subquery(node: Node) -> bool:
    return node.find(exp.Select) is not None


@dataclass(frozen=True)
class _Pair:
    """An equality between the subquery and the enclosing query: the subquery's side, and the other side, unmarked."""

    own: Expr
    other: Expr
    equality: Call

    def over(self, column: Column) -> Expr:
        return replace(self.equality, args=(column, self.other))


@dataclass
class SubqueryBinder:
    """Binds the terms of one WHERE that contain subqueries; collects the sources and predicates they become."""

    text: SqlText
    views: Views
    query: Callable[[Node, Names], Bound]
    """Binds a subquery, given the names of the enclosing query."""
    names: Names
    joined: Joined
    never_null: frozenset[str]
    """Columns of FROM that the other terms prove not NULL."""
    _optional: set[str] = field(default_factory=set)

    def bind(self, term: Node) -> None:
        """Bind one term. Raises SqlError or UnsupportedSql with the place."""
        inner = term.this.unnest() if isinstance(term, exp.Not) else term
        join = self._semi_join if inner is term else self._anti_join
        if isinstance(inner, exp.Exists):
            join(inner.this, None)
        elif isinstance(inner, exp.In) and inner.args.get("query") is not None:
            join(inner.args["query"], inner.this)
        else:
            self._compare(term)

    def _semi_join(self, query: Node, value: Node | None) -> None:
        """Join with the distinct values that make EXISTS true, or that IN compares a value with."""
        bound = self._members(query, value)
        if value is not None and _is_distinct(bound):
            source = self._joined_with(bound.selects[0], ())
        else:
            select = self._bag(bound, query)
            local, pairs = self._apart(select, query)
            items = [Item(f"k{i}", pair.own) for i, pair in enumerate(pairs, 1)]
            items.append(Item("v", Literal(1, INT) if value is None else select.items[0].expr))
            source = self._joined_with(distinct_over(_over(select, local, items)), pairs)
        if value is not None:
            left = Binder(self.text, self.names, "WHERE").bind(value)
            try:
                self._keep(logic.compare("=", left, source.column(source.columns[-1])))
            except Fault as fault:
                raise self.text.error(value, str(fault)) from None

    def _members(self, query: Node, value: Node | None) -> Bound:
        """Bind the subquery of EXISTS, or that of IN, which must have one column."""
        bound = self.query(query, self.names)
        if value is not None and len(bound.columns) != 1:
            raise self.text.error(query, f"IN takes a subquery of one column; this one has {len(bound.columns)}")
        return bound

    def _anti_join(self, query: Node, value: Node | None) -> None:
        """Add a source of which no row may match: a table, or the distinct values of an internal view.

        For NOT IN, the column of the subquery must differ from the value.
        """
        bound = self._members(query, value)
        select = self._bag(bound, query)
        if value is not None:
            equal = self._equal_in(select.items[0], query, value)
            select = replace(select, conjuncts=(*select.conjuncts, *logic.conjuncts_of(equal)))
        before = self.joined.conjuncts
        local, pairs = self._apart(select, query)
        if self.joined.conjuncts != before:
            raise self.text.unsupported(
                query,
                "a term in NOT EXISTS that is about the query around it alone",
                "UNION ALL joins the rows for which it is TRUE, under NOT EXISTS of the rest, and the others",
            )
        # An uncorrelated subquery is compared by a constant.
        owns = [pair.own for pair in pairs] or [Literal(1, INT)]
        others = [pair.other for pair in pairs] or [Literal(1, INT)]
        if len(select.sources) == 1 and not select.absent and self.views.is_positive(select.sources[0]):
            source = select.sources[0]
            source = replace(source, alias=self._free_alias(source.alias))
        else:
            items = [Item(f"k{i}", own) for i, own in enumerate(owns, 1)]
            made = self.views.internal_view(Bound((distinct_over(_over(select, local, items)),)))
            source = replace(self.views.source_of(made), alias=self._free_alias("subquery_1"))
            local, owns = (), [source.column(column) for column in source.columns]
        absent = Absent(source, local, tuple(zip(owns, others, strict=True)))
        self.joined = replace(self.joined, absent=(*self.joined.absent, absent))

    def _equal_in(self, item: Item, query: Node, value: Node) -> Expr:
        """The equality of NOT IN between a column of the subquery and a value of the enclosing query; neither may be
        NULL."""
        left = sharpened(Binder(self.text, self.names, "WHERE").bind(value), self.never_null)
        if left.nullable:
            name = self.text.of(value)
            raise self.text.unsupported(
                value,
                f"NOT IN (subquery) of {name}, which may be NULL,",
                f"add AND {name} IS NOT NULL, declare it NOT NULL, or write NOT EXISTS, where NULL equals nothing",
            )
        if item.expr.nullable:
            raise self.text.unsupported(
                query,
                f"NOT IN of a subquery whose column {item.name} may be NULL, for which it would never be TRUE,",
                "filter it by IS NOT NULL in the subquery, declare it NOT NULL, or write NOT EXISTS, where NULL equals "
                "nothing",
            )
        try:
            return logic.compare("=", renamed(left, lambda name: _OUTER + name), item.expr)
        except Fault as fault:
            raise self.text.error(value, str(fault)) from None

    def _free_alias(self, wish: str) -> str:
        """An alias that no source and no absent source has."""
        taken = [*self.joined.aliases, *(one.source.alias for one in self.joined.absent)]
        stem, number = wish.rstrip("0123456789").rstrip("_"), 2
        while any(same(wish, alias) for alias in taken):
            wish, number = f"{stem}_{number}", number + 1
        return wish

    def _compare(self, term: Node) -> None:
        """Bind a term that compares values of subqueries."""
        condition = Binder(self.text, self.names, "WHERE", subquery=self._value).condition(term)
        lost = self._optional - rejects_null(condition)
        if lost:
            raise self.text.unsupported(
                term,
                "a subquery that may have no row, in a term that may be TRUE then,",
                "compare its value, without COALESCE, IS NULL or OR",
            )
        self._optional.clear()
        self._keep(*logic.conjuncts_of(condition))

    def _value(self, query: Node) -> Expr:
        """The column that holds a scalar subquery's value for a row."""
        bound = self.query(query, self.names)
        if len(bound.columns) != 1:
            raise self.text.error(query, f"a subquery as a value has one column; this one has {len(bound.columns)}")
        select = bound.selects[0]
        if len(bound.selects) > 1 or select.kind != "global":
            raise self.text.unsupported(
                query, "a subquery as a value that may have several rows", "(SELECT MAX(x) FROM ...) has one"
            )
        dependent = any(map(_is_marked, select.conjuncts))
        local, pairs = self._apart(select, query)
        value = select.items[0].expr
        if dependent and any(one.function == "count" for one in select.aggregates):
            raise self.text.unsupported(
                query,
                "a COUNT in a subquery that names columns of the query around it",
                "a COUNT of no rows is 0, which no row of a join says; group in a subquery of FROM, and join it",
            )
        known = rejects_null(call("is_not_null", (value,), BOOLEAN)) if value.nullable else frozenset[str]()
        if dependent and not known:
            raise self.text.unsupported(
                query,
                "a value that is not NULL where no row is, in a subquery that names columns of the query around it,",
                "select the aggregate by itself; COALESCE and CASE would answer for rows that no join has",
            )
        chosen = {key(pair.own): Item(f"k{i}", pair.own) for i, pair in enumerate(pairs, 1)}
        places = {name: i for i, name in enumerate(chosen)}
        keys = [Item(f"k{i}", group_ref(places[key(p.own)], p.own)) for i, p in enumerate(pairs, 1)]
        items = (*keys, Item("v", value))
        kind = "groups" if pairs else "global"
        made = replace(select, kind=kind, conjuncts=local, items=items, groups=tuple(chosen.values()))
        source = self._joined_with(made, pairs)
        column = source.column(source.columns[-1])
        if dependent or select.having is not None:
            self._optional.add(column.name)
        return column

    def _bag(self, bound: Bound, query: Node) -> Select:
        """The subquery as one join: itself, or the rows of an internal view."""
        if len(bound.selects) == 1 and bound.selects[0].is_plain:
            return bound.selects[0]
        check_own(self.text, bound, query)
        source = self.views.source_of(self.views.internal_view(uniquely_named(bound)))
        return Select("bag", (source,), (), tuple(Item(c.name, source.column(c)) for c in source.columns))

    def _apart(self, select: Select, query: Node) -> tuple[tuple[Expr, ...], tuple[_Pair, ...]]:
        """Split the subquery's predicates: its own ones, and equalities with the enclosing query.

        Predicates over the enclosing query alone are kept there.
        """
        if any(_is_marked(other) for absent in select.absent for _, other in absent.pairs):
            raise self.text.unsupported(
                query,
                "NOT EXISTS that names a column of a query further around than the one around it",
                "name columns of the query around it",
            )
        local, pairs = [], []
        for conjunct in select.conjuncts:
            marks = _marks(conjunct)
            if not marks:
                local.append(conjunct)
            elif len(marks) == len(columns_of(conjunct)):
                self._keep(_unmarked(conjunct))
            else:
                pair = self._pair(conjunct, query)
                pairs.append(pair)
                if pair.equality.op != "null_safe_eq" and pair.own.nullable:
                    # Keep the NULL rejection of the equality; the SELECT list was bound with it.
                    local.append(call("is_not_null", (pair.own,), BOOLEAN))
        return tuple(local), tuple(pairs)

    def _pair(self, conjunct: Expr, query: Node) -> _Pair:
        if isinstance(conjunct, Call) and conjunct.op in _EQUALITIES:
            for own, other in (conjunct.args, conjunct.args[::-1]):
                if not _is_marked(own) and _marks(other) == columns_of(other):
                    return _Pair(own, _unmarked(other), conjunct)
        name = _marks(conjunct)[0]
        raise self.text.unsupported(
            query,
            f"a subquery that compares {name_of(name)}, of the query around it, other than by =",
            "each such column stands on one side of an equality",
        )

    def _joined_with(self, select: Select, pairs: tuple[_Pair, ...]) -> Source:
        """Make the subquery a source of the join; its first columns are the subquery's sides of the pairs."""
        made = self.views.source_of(self.views.internal_view(Bound((select,))))
        source = replace(made, alias=self._free_alias("subquery_1"))
        self.joined = replace(self.joined, sources=(*self.joined.sources, source))
        for pair, column in zip(pairs, source.columns, strict=False):
            self._keep(pair.over(source.column(column)))
        return source

    def _keep(self, *conjuncts: Expr) -> None:
        self.joined = replace(self.joined, conjuncts=(*self.joined.conjuncts, *conjuncts))


def _over(select: Select, conjuncts: tuple[Expr, ...], items: Sequence[Item]) -> Select:
    """The join of a bag with other columns and predicates."""
    return Select("bag", select.sources, conjuncts, tuple(items), absent=select.absent, optional=select.optional)


def names_around(bound: Bound) -> list[str]:
    """The columns of the enclosing query that a subquery's predicates contain."""
    outer = [other for select in bound.selects for absent in select.absent for _, other in absent.pairs]
    return [name for expr in (*(c for s in bound.selects for c in s.conjuncts), *outer) for name in _marks(expr)]


def check_own(text: SqlText, bound: Bound, query: Node) -> None:
    """Raise UnsupportedSql where a subquery that becomes an internal view names a column of the enclosing query."""
    marked = names_around(bound)
    if marked:
        raise text.unsupported(
            query,
            f"a column of the query around, {name_of(marked[0])}, in a subquery that groups or is a set operation",
            "group in a subquery of FROM, and join it",
        )


def _is_distinct(bound: Bound) -> bool:
    """True if its rows are groups, each once."""
    select = bound.selects[0]
    if len(bound.selects) > 1 or select.kind != "groups" or select.sets or names_around(bound):
        return False
    shown = {item.expr.name for item in select.items if isinstance(item.expr, Column)}
    return shown.issuperset(group_ref(i, group.expr).name for i, group in enumerate(select.groups))


def _marks(expr: Expr) -> tuple[str, ...]:
    """The marked columns of the enclosing query in an expression."""
    return tuple(name for name in columns_of(expr) if name.startswith(_OUTER))


def _is_marked(expr: Expr) -> bool:
    return bool(_marks(expr))


def _unmarked(expr: Expr) -> Expr:
    return renamed(expr, lambda name: name.removeprefix(_OUTER))
