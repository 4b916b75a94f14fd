"""Subqueries, as joins.

A term of WHERE becomes a source beside those of FROM, with at most one row for each row of the join, and predicates
over it::

    x IN (SELECT y FROM r)                     JOIN (SELECT DISTINCT y FROM r) ON x = y
    EXISTS (SELECT 1 FROM r WHERE r.k = o.k)   JOIN (SELECT DISTINCT k FROM r) AS q ON k = o.k

NOT EXISTS is no join: it names a source of which no row may match. So does NOT IN where neither side may be NULL.

Everywhere else a subquery is a value: a column of a source of an outer join, whose columns are NULL where the
subquery has no row::

    (SELECT MAX(y) FROM r WHERE k = o.k)       LEFT JOIN (SELECT k, MAX(y) AS v FROM r GROUP BY k) AS q ON k = o.k
    EXISTS (...)                               LEFT JOIN (SELECT DISTINCT k, 1 AS present ...) ON ..
    x < ANY (SELECT y ...)                     LEFT JOIN (SELECT k, COUNT(*), COUNT(y), MIN(y), MAX(y) ...) ON ..

A predicate that such a value makes not TRUE turns the outer join into an inner one (``blocks.outer_join``).

A subquery may name columns of the enclosing query in its WHERE. Where each is on one side of an equality, the other
side becomes a column of the source. Else the subquery is joined with the distinct values of the columns that it names.
Until then columns of the enclosing query are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from freshviews.catalog.catalog import same
from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.sql.blocks.block import Views
from freshviews.sql.blocks.bound import (
    Absent,
    AggregateCall,
    Bound,
    Item,
    Select,
    aggregate_index,
    aggregate_ref,
    distinct_over,
    group_ref,
)
from freshviews.sql.blocks.optional import EQUALITIES
from freshviews.sql.blocks.outer_join import Joined, LeftJoin, distinct_values
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import (
    FALSE,
    TRUE,
    Fault,
    call,
    integer,
    key,
    nodes_of,
    null,
    renamed,
    replaced,
    sharpened,
)
from freshviews.sql.expressions.expression import COMPARISONS, Binder
from freshviews.sql.expressions.nulls import where_null
from freshviews.sql.names.scope import Scope, Source, name_of
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import BIGINT, BOOLEAN, INT, SqlType

_OUTER = "\x1eouter"
_PRESENT = Item("present", Literal(1, INT))
_ROWS = AggregateCall("count", (), False, BIGINT)
_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _itself(expr: Expr) -> Expr:
    return expr


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
    ahead = [condition]
    while ahead:
        inner = ahead.pop().unnest()
        if isinstance(inner, exp.And):
            ahead += [inner.expression, inner.this]
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


@dataclass(frozen=True)
class Asked:
    """A subquery as a value: its place, the bound query, and how its rows are asked.

    ``sign``: the comparison of ANY and ALL, ``=`` for IN; empty for a scalar subquery and for EXISTS, which have no
    ``left``. ``all``: ALL. ``negated``: for ``<> ALL`` as NOT IN, and for ALL as NOT ANY of the opposite.
    """

    node: Node
    bound: Bound
    left: Expr | None = None
    sign: str = ""
    negated: bool = False

    @property
    def type(self) -> SqlType:
        return BOOLEAN if self.sign or isinstance(self.node, exp.Exists) else self.bound.columns[0].type


@dataclass
class SubqueryBinder:
    """Binds subqueries of one SELECT; collects the sources and predicates that they become."""

    text: SqlText
    views: Views
    query: Callable[[Node, Names], Bound]
    """Binds a subquery, given the names of the enclosing query."""
    names: Names
    joined: Joined
    never_null: frozenset[str] = frozenset()
    """Columns of FROM that the other terms prove not NULL."""
    over: Callable[[Expr], Expr] = _itself
    """What an expression of the enclosing query is over the sources of ``joined``."""

    def bind(self, term: Node) -> None:
        """Bind one term of WHERE. Raises SqlError or UnsupportedSql with the place."""
        inner = term.this.unnest() if isinstance(term, exp.Not) else term
        if isinstance(inner, exp.Exists):
            join = self._semi_join if inner is term else self._anti_join
            join(inner.this, self.query(inner.this, self.names), None)
        elif isinstance(inner, exp.In) and inner.args.get("query") is not None:
            self._in(inner, negated=inner is not term)
        else:
            self._keep(*logic.conjuncts_of(Binder(self.text, self.names, "WHERE", subquery=self.value).condition(term)))

    def _in(self, node: exp.In, negated: bool) -> None:
        """IN as a term: a semi-join. NOT IN: an anti-join where neither side may be NULL, else a value."""
        asked = self.ask(node, Binder(self.text, self.names, "WHERE", subquery=self.value).bind)
        assert asked.left is not None
        asked = replace(asked, left=sharpened(asked.left, self.never_null))
        if not negated:
            self._semi_join(node.args["query"], asked.bound, asked.left)
        elif asked.left is None or asked.left.nullable or asked.bound.columns[0].nullable:
            self._keep(logic.negation(self.answer(asked)))
        else:
            self._anti_join(node.args["query"], asked.bound, asked.left)

    def _equal(self, node: Node, left: Expr, right: Expr) -> Expr:
        try:
            return logic.compare("=", left, right)
        except Fault as fault:
            raise self.text.error(node, str(fault)) from None

    def _semi_join(self, query: Node, bound: Bound, value: Expr | None) -> None:
        """Join with the distinct values that make EXISTS true, or that IN compares a value with."""
        if value is not None and _is_distinct(bound):
            source = self._joined_with(bound.selects[0], ())
        else:
            select, pairs = self._apart(self._bag(bound, query), query, kept=True)
            items = _keys(pairs)
            items.append(_PRESENT if value is None else Item("v", select.items[0].expr))
            source = self._joined_with(distinct_over(_over(select, items)), pairs)
        if value is not None:
            self._keep(self._equal(query, value, source.column(source.columns[-1])))

    def _anti_join(self, query: Node, bound: Bound, value: Expr | None) -> None:
        """Add a source of which no row may match: a table, or the distinct values of an internal view.

        For NOT IN, the column of the subquery must differ from the value.
        """
        select = self._bag(bound, query)
        if value is not None:
            equal = self._equal(query, renamed(value, lambda name: _OUTER + name), select.items[0].expr)
            select = replace(select, conjuncts=(*select.conjuncts, *logic.conjuncts_of(equal)))
        select, pairs = self._apart(select, query)
        # An uncorrelated subquery is compared by a constant.
        owns = [pair.own for pair in pairs] or [Literal(1, INT)]
        others = [pair.other for pair in pairs] or [Literal(1, INT)]
        plain = len(select.sources) == 1 and not (select.absent or select.optional)
        if plain and self.views.is_positive(select.sources[0]):
            source, local = select.sources[0], select.conjuncts
            source = replace(source, alias=self._free_alias(source.alias))
        else:
            items = [Item(f"k{i}", own) for i, own in enumerate(owns, 1)]
            source, local = self._source(distinct_over(_over(select, items))), ()
            owns = [source.column(column) for column in source.columns]
        absent = Absent(source, local, tuple(zip(owns, others, strict=True)))
        self.joined = replace(self.joined, absent=(*self.joined.absent, absent))

    def _free_alias(self, wish: str) -> str:
        """An alias that no source and no absent source has."""
        taken = [*self.joined.aliases, *(one.source.alias for one in self.joined.absent)]
        stem, number = wish.rstrip("0123456789").rstrip("_"), 2
        while any(same(wish, alias) for alias in taken):
            wish, number = f"{stem}_{number}", number + 1
        return wish

    # Subqueries as values

    def value(self, node: Node, bind: Callable[[Node], Expr]) -> Expr:
        """The value of a subquery, an expression over the sources that it adds. ``bind`` binds what it is compared
        with."""
        return self.answer(self.ask(node, bind))

    def ask(self, node: Node, bind: Callable[[Node], Expr]) -> Asked:
        """Bind a subquery that stands for a value. Raises SqlError where it has several columns."""
        if isinstance(node, exp.Exists):
            return Asked(node, self.query(node.this, self.names))
        if isinstance(node, exp.In):
            return Asked(node, self._one_column(node.args["query"], "IN takes a subquery"), bind(node.this), "=")
        if type(node) in COMPARISONS:
            sign, every = COMPARISONS[type(node)], isinstance(node.expression, exp.All)
            query = node.expression.this
            bound = self._one_column(query, "ANY and ALL take a subquery")
            return Asked(node, bound, bind(node.this), _OPPOSITE[sign] if every else sign, every)
        return Asked(node, self._one_column(node, "a subquery as a value is one"))

    def _one_column(self, query: Node, what: str) -> Bound:
        bound = self.query(query, self.names)
        if len(bound.columns) != 1:
            raise self.text.error(query, f"{what} of one column; this one has {len(bound.columns)}")
        return bound

    def answer(self, asked: Asked) -> Expr:
        """The value of a subquery, as an expression over the sources that it adds."""
        if isinstance(asked.node, exp.Exists):
            select, pairs = self._apart(self._bag(asked.bound, asked.node), asked.node)
            keys = _keys(pairs)
            present = self._looked_up(distinct_over(_over(select, [*keys, _PRESENT])), pairs)[-1]
            return call("is_not_null", (present,), BOOLEAN)
        if asked.left is None:
            return self._scalar(asked)
        try:
            found = self._compared(asked, self.over(asked.left))
        except Fault as fault:
            raise self.text.error(asked.node, str(fault)) from None
        return logic.negation(found) if asked.negated else found

    def _compared(self, asked: Asked, left: Expr) -> Expr:
        """``left sign ANY (subquery)``: TRUE if it is for some row, NULL if it is for none and NULL for some."""
        select, pairs = self._apart(self._bag(asked.bound, asked.node), asked.node)
        value = select.items[0].expr
        if asked.sign == "=":
            keys = _keys(pairs)
            known = logic.conjuncts_of(call("is_not_null", (value,), BOOLEAN)) if value.nullable else ()
            matching = replace(select, conjuncts=(*select.conjuncts, *known))
            members = distinct_over(_over(matching, [*keys, Item("v", value), _PRESENT]))
            member = Column("", value.type, False)
            on = logic.compare("=", left, member)
            present = self._looked_up(members, pairs, lambda column: _at(on, column))[-1]
            true = call("is_not_null", (present,), BOOLEAN)
            if not (left.nullable or value.nullable):
                return true
            rows, known_rows = self._looked_up(*self._aggregated(select, pairs, (_ROWS, _count(value))))[-2:]
        else:
            least, greatest = (AggregateCall(which, (value,), False, value.type) for which in ("min", "max"))
            made = self._aggregated(select, pairs, (_ROWS, _count(value), least, greatest))
            rows, known_rows, low, high = self._looked_up(*made)[-4:]
            if asked.sign == "<>":
                true = logic.either(logic.compare("<>", low, high), logic.compare("<>", left, low))
            else:
                true = logic.compare(asked.sign, left, low if asked.sign in (">", ">=") else high)
        unknown = logic.either(
            call("is_null", (left,), BOOLEAN) if left.nullable else FALSE, logic.compare("<", known_rows, rows)
        )
        none = logic.compare("=", logic.first_of((rows, integer(0))), integer(0))
        return logic.choose([(none, FALSE), (true, TRUE), (unknown, null(BOOLEAN))], FALSE)

    def _scalar(self, asked: Asked) -> Expr:
        """The value of the one row of a subquery; NULL where it has none."""
        node, bound = asked.node, asked.bound
        select = bound.selects[0]
        if len(bound.selects) > 1 or select.kind != "global":
            return self._only_row(self._bag(bound, node), node)
        select, pairs = self._apart(select, node)
        value = select.items[0].expr
        if select.having is not None:
            value = logic.choose([(select.having, value)], null(value.type))
            select = replace(select, having=None)
        if not pairs:
            source = self._joined_with(replace(select, items=(Item("v", value),)), ())
            return source.column(source.columns[0])
        empty = _of_no_rows(value, select.aggregates)
        made = _grouped(select, pairs, select.aggregates, [Item("v", value), _PRESENT])
        found, present = self._looked_up(made, pairs)[-2:]
        if empty == null(empty.type):
            return found
        return logic.choose([(call("is_null", (present,), BOOLEAN), empty)], found)

    def _only_row(self, select: Select, node: Node) -> Expr:
        """The value of a subquery that may come to have several rows, which then refuses the batch."""
        select, pairs = self._apart(select, node)
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
        made = _grouped(select, pairs, calls, [Item(select.items[0].name, logic.choose(branches, null(value.type)))])
        if not pairs:
            source = self._joined_with(made, ())
            return source.column(source.columns[0])
        return self._looked_up(made, pairs)[-1]

    def _aggregated(
        self, select: Select, pairs: tuple[_Pair, ...], calls: tuple[AggregateCall, ...]
    ) -> tuple[Select, tuple[_Pair, ...]]:
        """Aggregates of a subquery's rows by its keys, one column each."""
        refs = (aggregate_ref(i, one, bool(pairs)) for i, one in enumerate(calls))
        return _grouped(select, pairs, calls, [Item(f"a{i}", ref) for i, ref in enumerate(refs, 1)]), pairs

    def _looked_up(
        self, select: Select, pairs: tuple[_Pair, ...], also: Callable[[Column], Expr] | None = None
    ) -> list[Expr]:
        """Join with an internal view by its keys, which come first, so that its columns are NULL where it has no row.
        Returns them. ``also``: an equality of the column after the keys."""
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

    def _bag(self, bound: Bound, query: Node) -> Select:
        """The subquery as one join: itself, or the rows of an internal view."""
        if len(bound.selects) == 1 and bound.selects[0].is_plain:
            return bound.selects[0]
        check_own(self.text, bound, query)
        source = self.views.source_of(self.views.internal_view(uniquely_named(bound)))
        return Select("bag", (source,), (), tuple(Item(c.name, source.column(c)) for c in source.columns))

    def _apart(self, select: Select, query: Node, kept: bool = False) -> tuple[Select, tuple[_Pair, ...]]:
        """The subquery without names of the enclosing query, and the equalities that tie it to a row of that.

        Where it names them other than in equalities, it is joined with the distinct values of these names. ``kept``:
        predicates over the enclosing query alone are kept there.
        """
        local, pairs = [], []
        around = [e for a in select.absent for _, e in a.pairs] + [t for one in select.optional for t in one.on]
        for conjunct in select.conjuncts:
            marks = _marks(conjunct)
            pair = _pair(conjunct, self.over)
            if not marks:
                local.append(conjunct)
            elif kept and len(marks) == len(columns_of(conjunct)):
                self._keep(self.over(_unmarked(conjunct)))
            elif pair is None:
                return self._with_names(select, query)
            else:
                pairs.append(pair)
                if pair.equality.op != "null_safe_eq" and pair.own.nullable:
                    # Keep the NULL rejection of the equality; the SELECT list was bound with it.
                    local.append(call("is_not_null", (pair.own,), BOOLEAN))
        if any(map(_is_marked, around)):
            return self._with_names(select, query)
        return replace(select, conjuncts=tuple(local)), tuple(pairs)

    def _with_names(self, select: Select, query: Node) -> tuple[Select, tuple[_Pair, ...]]:
        """The subquery joined with the distinct values of the columns that it names of the enclosing query."""
        exprs = [*select.conjuncts, *(e for a in select.absent for _, e in a.pairs)]
        exprs += [term for one in select.optional for term in one.on]
        nodes = {n.name: n for expr in exprs for n in nodes_of(expr) if isinstance(n, Column) and _is_marked(n)}
        columns = {name: _unmarked(node) for name, node in nodes.items()}
        far = next((one for one in columns.values() if _is_marked(one)), None)
        if far is not None:
            raise self.text.unsupported(
                query,
                f"a subquery that compares {name_of(columns_of(far)[0])}, of a query further around, other than by =",
                "join that query's table in the subquery between",
            )
        over = {name: self.over(one) for name, one in columns.items()}
        keys = self._source(distinct_values(self.joined, tuple(over.values()), self.views))
        to = {name: keys.column(c) for name, c in zip(columns, keys.columns, strict=True)}

        def moved(expr: Expr) -> Expr:
            return replaced(expr, lambda part: to.get(part.name) if isinstance(part, Column) else None)

        absent = (replace(a, pairs=tuple((own, moved(other)) for own, other in a.pairs)) for a in select.absent)
        made = replace(
            select,
            sources=(keys, *select.sources),
            conjuncts=tuple(map(moved, select.conjuncts)),
            absent=tuple(absent),
            optional=tuple(replace(one, on=tuple(map(moved, one.on))) for one in select.optional),
        )
        pairs = []
        for name, own in to.items():
            op = "null_safe_eq" if own.nullable else "eq_float" if own.type.is_float else "eq"
            equality = call(op, (own, over[name]), BOOLEAN)
            assert isinstance(equality, Call)
            pairs.append(_Pair(own, over[name], equality))
        return made, tuple(pairs)

    def _joined_with(self, select: Select, pairs: tuple[_Pair, ...]) -> Source:
        """Make the subquery a source of the join; its first columns are the subquery's sides of the pairs."""
        source = self._source(select)
        self.joined = replace(self.joined, sources=(*self.joined.sources, source))
        for pair, column in zip(pairs, source.columns, strict=False):
            self._keep(pair.over(source.column(column)))
        return source

    def _keep(self, *conjuncts: Expr) -> None:
        self.joined = replace(self.joined, conjuncts=(*self.joined.conjuncts, *conjuncts))


def _pair(conjunct: Expr, over: Callable[[Expr], Expr]) -> _Pair | None:
    """An equality of the subquery with the enclosing query; None where it is no such equality."""
    if isinstance(conjunct, Call) and conjunct.op in EQUALITIES:
        for own, other in (conjunct.args, conjunct.args[::-1]):
            if not _is_marked(own) and _marks(other) == columns_of(other):
                return _Pair(own, over(_unmarked(other)), conjunct)
    return None


def _keys(pairs: Sequence[_Pair]) -> list[Item]:
    """The subquery's sides of the pairs as columns, each named by its own column."""
    owns = [pair.own for pair in pairs]
    return [Item(name_of(e.name) if isinstance(e, Column) else f"k{i}", e) for i, e in enumerate(owns, 1)]


def _count(value: Expr) -> AggregateCall:
    return AggregateCall("count", (value,) if value.nullable else (), False, BIGINT)


def _at(equality: Expr, column: Column) -> Expr:
    """An equality with a column in the place of the column without a name."""
    return replaced(equality, lambda part: column if isinstance(part, Column) and not part.name else None)


def _grouped(
    select: Select, pairs: Sequence[_Pair], calls: tuple[AggregateCall, ...], items: Sequence[Item]
) -> Select:
    """Aggregates of a subquery by its sides of the pairs, which come first among its columns."""
    chosen = {key(item.expr): item for item in _keys(pairs)}
    places = {name: i for i, name in enumerate(chosen)}
    keys = [Item(item.name, group_ref(places[key(item.expr)], item.expr)) for item in _keys(pairs)]
    return replace(
        select,
        kind="groups" if pairs else "global",
        items=(*keys, *items),
        groups=tuple(chosen.values()),
        aggregates=calls,
    )


def _of_no_rows(value: Expr, calls: Sequence[AggregateCall]) -> Expr:
    """The value of an aggregate expression over no rows: COUNT is 0, all else NULL."""

    def zero(part: Expr) -> Expr | None:
        index = aggregate_index(part.name) if isinstance(part, Column) else None
        return integer(0) if index is not None and calls[index].function == "count" else None

    return where_null(replaced(value, zero), lambda name: True)


def _over(select: Select, items: Sequence[Item]) -> Select:
    """The join of a bag with other columns."""
    made = Select("bag", select.sources, select.conjuncts, tuple(items), absent=select.absent)
    return replace(made, optional=select.optional)


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
