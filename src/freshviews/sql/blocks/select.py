"""Stage 2: bind a query expression to SELECTs, and make the internal views they need.

A query is one SELECT, or several under set operations. Every clause is either bound or refused; none is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from sqlglot import exp

from freshviews.catalog.catalog import Catalog, NameProblem, unknown
from freshviews.catalog.definitions import ColumnDef, ConstantRow, PlainView, ReadOrder, SortPlace, TableDef, ViewDef
from freshviews.errors import SqlError
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.sql.blocks.aggregates import Collector, columns_outside, is_aggregate
from freshviews.sql.blocks.block import with_query_names
from freshviews.sql.blocks.bound import (
    Bound,
    Item,
    Select,
    aggregate_ref,
    distinct_over,
    group_ref,
    grouping_ref,
    has_aggregate,
    over_groups,
    subquery_ref,
    ungrouped,
)
from freshviews.sql.blocks.constants import constant_rows
from freshviews.sql.blocks.from_clause import FromBinder, columns_read
from freshviews.sql.blocks.grouping_sets import (
    GroupingSets,
    Written,
    check_group,
    column_form,
    forms_of,
    grouping_sets,
    written,
)
from freshviews.sql.blocks.limit import Clause, check_operand, clause_of, limited, places_of
from freshviews.sql.blocks.outer_join import Joined, lowered
from freshviews.sql.blocks.set_operation import ALL, blocks_of, distinct_rows, everything, set_operation, uniquely_named
from freshviews.sql.blocks.subquery import Asked, Names, SubqueryBinder, check_own, has_subquery, names_around, terms_of
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import VOID, Fault, key, rejects_null, replaced
from freshviews.sql.expressions.expression import Binder, is_asked
from freshviews.sql.names.scope import Entry, Scope, Source, name_of
from freshviews.sql.names.star import columns_of, is_star
from freshviews.sql.text.parse import Node, SqlText, parse
from freshviews.sql.text.refuse import check_cte, check_select, check_set_operation
from freshviews.types import INT

_SET_OPERATIONS = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}


@dataclass
class _Cte:
    """A WITH query or a plain view. It is bound at each use where it dissolves into the join, and once where it needs
    an internal view. ``text``: the text of a plain view."""

    node: exp.CTE
    outer: Mapping[str, _Cte]
    view: ViewDef | None = None
    text: SqlText | None = None
    is_bound: bool = False


@dataclass
class ViewBinder:
    """Binds the query of one view. ``internal`` collects the internal views that the query needs."""

    text: SqlText
    catalog: Catalog
    view: str
    named: bool = False
    """True if the view has a LIMIT and names the strategy that maintains the rows it orders."""
    internal: list[ViewDef] = field(default_factory=list)
    relations: dict[str, None] = field(default_factory=dict)
    """The tables and views that the query and its plain views name."""
    plain: dict[str, _Cte] = field(default_factory=dict)
    """The plain views that the query names."""
    _with_view: list[_Cte] = field(default_factory=list)
    """The WITH queries that have an internal view."""
    outermost: Node | None = None
    """The query, out of its parentheses: its ORDER BY is the order in which the view is read."""
    order: ReadOrder | None = None

    def whole_query(self, node: Node) -> Bound:
        """Return the SELECTs of the view's query; ``order`` is then the order in which its rows are read."""
        self.outermost = node
        while isinstance(self.outermost, exp.Subquery) and clause_of(self.text, self.outermost) is None:
            self.outermost = self.outermost.this
        return self.bind(node)

    def bind(self, node: Node, ctes: Mapping[str, _Cte] | None = None, around: Names | None = None) -> Bound:
        """Return the SELECTs of a query.

        ``around``: the names of the enclosing query, which WHERE may use. Raises SqlError or UnsupportedSql with the
        place.
        """
        outer = ctes or {}
        known = self._with(node, outer)
        bound = self._query(node, known, around)
        if known is not outer:
            self._bind_unused(node.args["with_"], known)
        return bound

    def _query(self, node: Node, ctes: Mapping[str, _Cte], around: Names | None) -> Bound:
        """Bind a query whose WITH queries are known."""
        if isinstance(node, (exp.Subquery, exp.SetOperation)):
            check_set_operation(self.text, node)
            clause = clause_of(self.text, node)
            if isinstance(node, exp.Subquery):
                bound = self.bind(node.this, ctes, around)
            else:
                bound = self._set_operation(node, ctes, around)
            if clause is not None and clause.limit is None:
                return self._ordered_rows(bound, clause, node)
            return bound if clause is None else self._first_of(bound, clause, node)
        if isinstance(node, exp.Select):
            check_select(self.text, node)
            clause = clause_of(self.text, node)
            select, places, columns = _SelectBinder(self, node, ctes, around).bind(clause)
            bound = Bound((select,))
            if clause is not None and clause.limit is None:
                return self._in_order(bound, places, columns, node)
            return bound if clause is None else self._limited(bound, clause, places, columns, node)
        if isinstance(node, exp.Values):
            source = self.source_of(self.constant_view(*constant_rows(self.text, node)))
            return Bound((Select("bag", (source,), (), tuple(Item(c.name, source.column(c)) for c in source.columns)),))
        what = type(node).__name__.upper()
        instead = "SELECT, VALUES and UNION [ALL], EXCEPT and INTERSECT of SELECTs are accepted"
        raise self.text.unsupported(node, what, instead)

    def internal_view(self, bound: Bound) -> ViewDef:
        """Make an internal view of the query."""
        blocks = blocks_of(bound, self)
        name = f"{self.view}#{len(self.internal) + 1}"
        view = ViewDef(name, bound.columns, with_query_names(blocks, name), internal=True, combined=bound.combined)
        self.internal.append(view)
        return view

    def constant_view(self, columns: tuple[ColumnDef, ...], rows: tuple[ConstantRow, ...]) -> ViewDef:
        """Make an internal view of constant rows, or return one that there is."""
        for known in self.internal:
            if known.constants == rows and known.columns == columns:
                return known
        view = ViewDef(f"{self.view}#{len(self.internal) + 1}", columns, (), internal=True, constants=rows)
        self.internal.append(view)
        return view

    def one_row(self) -> Source:
        """A source with one row, for a SELECT without FROM."""
        return replace(self.source_of(self.constant_view((ColumnDef("one", INT, False),), ((1,),))), alias="one")

    def source_of(self, view: ViewDef) -> Source:
        """Return an internal view as a source. Callers replace the alias."""
        return Source(view.name.split("#")[0], view.name, view.columns)

    def is_positive(self, source: Source) -> bool:
        """True if the source is a table without rows of negative multiplicity."""
        found = self.catalog.relation(source.relation)
        return isinstance(found, TableDef) and not found.trusted

    def _with(self, node: Node, outer: Mapping[str, _Cte]) -> Mapping[str, _Cte]:
        clause = node.args.get("with_")
        if clause is None:
            return outer
        if clause.args.get("recursive"):
            raise self.text.unsupported(clause, "WITH RECURSIVE", "WITH queries that do not refer to themselves")
        known = dict(outer)
        seen: set[str] = set()
        for cte in clause.expressions:
            name = cte.alias.lower()
            check_cte(self.text, cte)
            if name in seen:
                raise self.text.error(cte, f"{cte.alias} stands twice in WITH; give one of them another name")
            seen.add(name)
            known[name] = _Cte(cte, dict(known))
        return known

    def _bind_unused(self, clause: exp.With, known: Mapping[str, _Cte]) -> None:
        """Check the WITH queries that nothing reads: bind them, and drop the internal views that they would need."""
        internal = len(self.internal)
        # A later one may read an earlier one, which is then checked with it.
        for cte in reversed([known[one.alias.lower()] for one in clause.expressions]):
            if not cte.is_bound:
                self._of_cte(cte)
        dropped = self.internal[internal:]
        del self.internal[internal:]
        for one in self._with_view:
            if one.view is not None and any(one.view is view for view in dropped):
                one.view = None

    def _first_of(self, bound: Bound, clause: Clause, node: Node) -> Bound:
        """The first rows of a set operation or of a query in parentheses, ordered by its columns."""
        whole = self._whole(bound, node)
        places, added = self._places_of(clause, whole.items)
        made = Bound((replace(whole, items=(*whole.items, *added)),))
        return self._limited(made, clause, places, len(whole.items), node)

    def _places_of(self, clause: Clause, items: tuple[Item, ...]) -> tuple[tuple[SortPlace, ...], tuple[Item, ...]]:
        """The places of an ORDER BY over these columns alone, and the columns that it adds to them."""
        entries = tuple(Entry("", item.name, item.expr) for item in items)
        scope = Scope(entries, entries)
        binder = Binder(self.text, lambda c: scope.resolve(self.text, c), "ORDER BY")
        places, added, _ = places_of(clause, items, binder, lambda n: self.position(n, items, "ORDER BY"))
        return places, added

    def _ordered_rows(self, bound: Bound, clause: Clause, node: Node) -> Bound:
        """A set operation or a query in parentheses with ORDER BY, and no LIMIT."""
        shown = tuple(Item(one.name, Column(f"{i}", one.type, one.nullable)) for i, one in enumerate(bound.columns))
        places, added = self._places_of(clause, shown)
        if added and node is self.outermost:
            whole = self._whole(bound, node)
            places, added = self._places_of(clause, whole.items)
            bound = Bound((replace(whole, items=(*whole.items, *added)),))
        return self._in_order(bound, places, len(shown), node)

    def _in_order(self, bound: Bound, places: tuple[SortPlace, ...], columns: int, node: Node) -> Bound:
        """A query with ORDER BY and no LIMIT. The order is that of reading the view; in a subquery it has no effect.

        Columns after the first ``columns`` are for the order alone.
        """
        hidden = len(bound.columns) > columns
        relation = ""
        if hidden and node is self.outermost:
            bound = Bound((self._whole(bound, node),))
            relation = self.internal[-1].name
        if hidden:
            bound = Bound(tuple(replace(select, items=select.items[:columns]) for select in bound.selects))
        if node is self.outermost and places:
            self.order = ReadOrder(places, relation)
        return bound

    def _limited(self, bound: Bound, clause: Clause, places: tuple[SortPlace, ...], columns: int, node: Node) -> Bound:
        """The first rows of a query: of one relation, or of an internal view that holds all rows.

        Where a view with a LIMIT names a strategy, the strategy is that of the internal view.
        """
        select = bound.selects[0]
        if names_around(bound):
            what = "LIMIT in a subquery that names columns of the query around it"
            raise self.text.unsupported(node, what, "leave it out, or take MIN or MAX")
        direct = select.is_plain and not select.absent and len(bound.selects) == len(select.sources) == 1
        if not direct or (self.named and "#" not in select.sources[0].relation):
            select = self._whole(bound, node)
        if node is self.outermost:
            self.order = ReadOrder(None)
        return limited(select, clause, places, columns)

    def _whole(self, bound: Bound, node: Node) -> Select:
        """All rows of a query, as those of an internal view."""
        self.check_types(bound, node)
        return everything(self.source_of(self.internal_view(uniquely_named(bound))), bound)

    def position(self, node: exp.Literal, items: tuple[Item, ...], clause: str) -> int:
        """The position, from 0, of the SELECT item that a number in GROUP BY or ORDER BY names."""
        place = int(node.name) if node.name.isdigit() else 0
        if not 1 <= place <= len(items):
            raise self.text.error(node, f"{clause} {node.name}: the list has columns 1 to {len(items)}")
        return place - 1

    def _set_operation(self, node: exp.SetOperation, ctes: Mapping[str, _Cte], around: Names | None) -> Bound:
        kind = _SET_OPERATIONS[type(node)]
        word = kind.upper()
        for operand in (node.this, node.expression):
            check_operand(self.text, operand, word)
        left, right = (self._operand(one, ctes, around) for one in (node.this, node.expression))
        for one in (left, right):
            check_own(self.text, one, node)
        distinct = bool(node.args.get("distinct"))
        if not distinct and kind != "union":
            kind, word = f"{kind}_all", f"{word} ALL"
        elif not distinct:
            kind = ALL
        counts = len(left.columns), len(right.columns)
        if counts[0] != counts[1]:
            raise self.text.error(
                node.expression,
                f"{word} joins queries of as many columns; here they have {counts[0]} and {counts[1]}",
            )
        try:
            made = set_operation(kind, left, right, self)
        except Fault as fault:
            raise self.text.error(node.expression, str(fault)) from None
        if kind != ALL:
            self.check_types(made, node)
        return made

    def _operand(self, node: Node, ctes: Mapping[str, _Cte], around: Names | None) -> Bound:
        """Bind an operand of a set operation. An operand with a LIMIT becomes an internal view."""
        bound = self.bind(node, ctes, around)
        return bound if bound.selects[0].limit is None else Bound((self._whole(bound, node),))

    def check_types(self, bound: Bound, node: Node) -> None:
        """Raise SqlError where a column has no type: a bare NULL has none."""
        for column in bound.columns:
            if column.type == VOID:
                raise self.text.error(
                    node,
                    f"column {column.name} is NULL without a type; write CAST(NULL AS INT) or another type",
                )

    def relation(self, table: exp.Table, ctes: Mapping[str, _Cte]) -> Select | Source:
        cte = ctes.get(table.name.lower())
        if cte is not None:
            return self._of_cte(cte)
        found = self.catalog.named(table.name)
        if found is not None:
            self.relations.setdefault(found.name)
        if isinstance(found, PlainView):
            return self._of_cte(self.plain.setdefault(found.name, _Cte(*_query_of(found))))
        if found is None or (isinstance(found, ViewDef) and found.internal):
            known = (*self.catalog.names, *(one.node.alias for one in ctes.values()))
            raise NameProblem(unknown("table or view", table.name, known), *self.text.at(table))
        return Source(table.name, found.name, found.columns)

    def _of_cte(self, cte: _Cte) -> Select | Source:
        cte.is_bound = True
        if cte.view is not None:
            return self.source_of(cte.view)
        binder = self if cte.text is None else replace(self, text=cte.text)
        made = binder.subquery(cte.node.this, cte.outer)
        names = tuple(c.name for c in cte.node.args["alias"].columns)
        if names and len(names) != len(made.columns):
            raise self.text.error(
                cte.node, f"{cte.node.alias} lists {len(names)} columns, its query {len(made.columns)}"
            )
        if isinstance(made, Source):
            view = self.internal[-1]
            if names:
                columns = tuple(replace(c, name=n) for c, n in zip(view.columns, names, strict=True))
                view = self.internal[-1] = _with_names(view, columns)
            cte.view = view
            self._with_view.append(cte)
            return self.source_of(view)
        if names:
            made = replace(made, items=tuple(replace(i, name=n) for i, n in zip(made.items, names, strict=True)))
        return made

    def subquery(self, node: Node, ctes: Mapping[str, _Cte]) -> Select | Source:
        """Bind a query in FROM: a SELECT that only selects, projects and joins dissolves; any other becomes an internal
        view."""
        bound = self.bind(node, ctes)
        if len(bound.selects) == 1 and bound.selects[0].is_plain and not bound.selects[0].absent:
            return bound.selects[0]
        self.check_types(bound, node)
        names = [column.name.lower() for column in bound.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self.text.error(node, f"column {twice} stands twice in the subquery; give one another name with AS")
        return self.source_of(self.internal_view(bound))


@dataclass
class _SelectBinder:
    """Binds one SELECT, in the order that name resolution needs: FROM, WHERE, the list, GROUP BY, HAVING."""

    views: ViewBinder
    node: exp.Select
    ctes: Mapping[str, _Cte]
    around: Names | None = None
    values: dict[int, str] = field(default_factory=dict)
    """The names in the scope of the values of subqueries, by their nodes."""
    scope: Scope = field(default_factory=Scope)
    asked: list[Asked] = field(default_factory=list)
    """The subqueries of a grouped SELECT whose values are those of its groups."""

    def bind(self, clause: Clause | None) -> tuple[Select, tuple[SortPlace, ...], int]:
        """Return the SELECT, the places of the ORDER BY columns in its list, and the length of the list as written.

        The SELECT's list also has the columns that only ORDER BY names.
        """
        text, node = self.views.text, self.node
        joined = self._from()
        self.scope = joined.scope
        group = node.args.get("group")
        having = node.args.get("having")
        by = None if group is None else written(text, group)
        sets = None if by is None or by.sets is None else self._sets(by, joined.scope)
        kind = "groups" if by is not None and not by.is_global else "global"
        collector = self._collector(joined.scope, kind == "groups", _no_sets(text) if sets is None else sets.grouping)
        items, nodes = self._items(joined.scope, collector, sets)
        named = _aliases(items, nodes)
        every = self._groups(by, joined.scope, items, nodes) if sets is None else ()
        # A constant is the same in all rows.
        groups = tuple(g for g in every if not isinstance(g.expr, Literal)) if sets is None else sets.groups
        # Grouping sets resolved their groups when the items were bound.
        known = groups if sets is None else ()
        columns = len(items)
        places: tuple[SortPlace, ...] = ()
        if clause is not None:
            places, items, nodes = self._order(clause, joined.scope, items, nodes, collector, sets)
        test = None
        if having is not None:
            scope = joined.scope.with_aliases(named)
            whole = None if sets is None else sets.of
            binder = Binder(text, lambda c: scope.resolve(text, c), "HAVING", collector.bind, self._subquery, whole)
            test = self._grouped(binder.condition(having.this), known, having.this, scope)
        join = joined.sources, joined.conjuncts
        if not (collector.calls or group is not None or having is not None):
            select = Select("bag", *join, items, absent=joined.absent, optional=joined.optional)
            return distinct_over(select) if node.args.get("distinct") else select, places, columns
        over = tuple(
            replace(item, expr=self._grouped(item.expr, known, one, joined.scope))
            for item, one in zip(items, nodes, strict=True)
        )
        in_text = (*nodes[:columns], *([] if having is None else [having.this]))
        self._refuse_ungrouped(in_text, every, joined.scope, sets)
        if clause is not None:
            shown = {item.name.lower(): i for i, item in enumerate(items[:columns])}
            self._refuse_ungrouped((one.this for one in clause.order), every, joined.scope, sets, shown)
        calls = tuple(collector.calls)
        select = Select(kind, *join, over, groups, calls, test, joined.absent, optional=joined.optional)
        if sets is not None and kind == "groups":
            select = replace(select, sets=sets.sets)
        if self.asked:
            select = self._with_subqueries(select)
            return distinct_over(select) if node.args.get("distinct") else select, places, columns
        if not node.args.get("distinct"):
            return select, places, columns
        grouped = Bound((select,))
        check_own(text, grouped, node)
        self.views.check_types(grouped, node)
        return distinct_rows(grouped, self.views), places, columns

    def _order(
        self,
        clause: Clause,
        scope: Scope,
        items: tuple[Item, ...],
        nodes: tuple[Node, ...],
        collector: Collector,
        sets: GroupingSets | None,
    ) -> tuple[tuple[SortPlace, ...], tuple[Item, ...], tuple[Node, ...]]:
        """Return the place of each ORDER BY column in the list, and the list and its nodes, extended by missing
        columns.

        A name means a column of the list before one of FROM.
        """
        text = self.views.text
        names = [item.name.lower() for item in items]
        shown = {name: i for i, name in enumerate(names) if names.count(name) == 1}

        def resolve(column: exp.Column) -> Expr:
            place = None if column.table else shown.get(column.name.lower())
            return scope.resolve(text, column) if place is None else items[place].expr

        whole = None if sets is None else partial(sets.of, shown=shown)
        binder = Binder(text, resolve, "ORDER BY", collector.bind, self._subquery, whole)
        places, added, more = places_of(clause, items, binder, lambda n: self.views.position(n, items, "ORDER BY"))
        if added and self.node.args.get("distinct"):
            raise text.error(more[0], "SELECT DISTINCT is ordered by columns of its list; add this one, or GROUP BY")
        return places, (*items, *added), (*nodes, *more)

    def _from(self) -> Joined:
        binder = FromBinder(
            self.views.text,
            lambda table: self.views.relation(table, self.ctes),
            lambda query: self.views.subquery(query, self.ctes),
            self.views,
            columns_read(self.node, True),
        )
        joined = binder.bind(self.node)
        where = self.node.args.get("where")
        terms = [*binder.asked, *([] if where is None else [where.this])]
        if terms:
            joined = self._where(joined, terms)
        joined = self._with_values(joined)
        read = columns_read(self.node, False)
        if read is not None:
            read = {*read, *(("", name) for name in self.values.values())}
        joined = lowered(joined, self.views, read)
        never_null = frozenset[str]().union(*map(rejects_null, joined.conjuncts))
        return replace(joined, scope=joined.scope.knowing(never_null))

    def _where(self, joined: Joined, where: Sequence[Node]) -> Joined:
        """Add the predicates of WHERE to the join; subqueries become joins or absent sources."""
        text = self.views.text
        names = Names(text, joined.scope, self.around)
        asking = [term for whole in where for term in terms_of(whole) if has_subquery(term)]
        plain = [t for whole in where for t in (terms_of(whole) if asking else [whole]) if not has_subquery(t)]
        conjuncts: list[Expr] = []
        for term in plain:
            conjuncts += logic.conjuncts_of(Binder(text, names, "WHERE").condition(term))
        if asking:
            known = frozenset[str]().union(*map(rejects_null, (*joined.conjuncts, *conjuncts)))
            bound = replace(self._subqueries(joined), never_null=known)
            for term in asking:
                bound.bind(term)
            joined = bound.joined
        return replace(joined, conjuncts=(*joined.conjuncts, *conjuncts))

    def _subqueries(self, joined: Joined) -> SubqueryBinder:
        names = Names(self.views.text, joined.scope, self.around)
        return SubqueryBinder(
            self.views.text, self.views, lambda q, n: self.views.bind(q, self.ctes, n), names, joined
        )

    def _with_values(self, joined: Joined) -> Joined:
        """The join with the sources of subqueries that are values of its rows. The scope has these values, under names
        that no column has."""
        nodes = list(_rows_ask(self.node))
        if not nodes:
            return joined
        binder = self._subqueries(joined)
        bind = Binder(self.views.text, binder.names, "SELECT", subquery=binder.value).bind
        entries: list[Entry] = []
        made: dict[Node, str] = {}
        for node in nodes:
            # Equal subqueries are one: the same value stands in GROUP BY and in the list.
            if node not in made:
                made[node] = f"\x1dvalue{len(made)}"
                entries.append(Entry("", made[node], binder.value(node, bind)))
            self.values[id(node)] = made[node]
        scope = replace(joined.scope, entries=(*joined.scope.entries, *entries))
        return replace(binder.joined, scope=scope)

    def _subquery(self, node: Node, bind: Callable[[Node], Expr]) -> Expr:
        """The value of a subquery: of a row of the join, or of a group."""
        known = self._value_of_row(node)
        if known is not None:
            return known
        self.asked.append(self._subqueries(Joined(scope=self.scope)).ask(node, bind))
        return subquery_ref(len(self.asked) - 1, self.asked[-1].type)

    def _value_of_row(self, node: Node) -> Expr | None:
        """The value of a subquery that is one of the rows of the join, or equal to one of GROUP BY."""
        group = self.node.args.get("group")
        same_group = [] if group is None else [one for one in group.find_all(type(node)) if one == node]
        name = next((self.values[id(one)] for one in (node, *same_group) if id(one) in self.values), None)
        return next((entry.expr for entry in self.scope.entries if entry.name == name), None)

    def _with_subqueries(self, select: Select) -> Select:
        """A grouped SELECT as a view of its groups and aggregates, joined with its subqueries."""
        text, node = self.views.text, self.node
        if select.sets:
            raise text.unsupported(node, "a subquery as a value beside grouping sets", "group in a subquery of FROM")
        check_own(text, Bound((select,)), node)
        refs = [group_ref(i, group.expr) for i, group in enumerate(select.groups)]
        refs += [aggregate_ref(i, call, select.kind == "groups") for i, call in enumerate(select.aggregates)]
        inner = replace(select, items=tuple(Item(f"c{i}", ref) for i, ref in enumerate(refs, 1)), having=None)
        source = replace(self.views.source_of(self.views.internal_view(Bound((inner,)))), alias="grouped")
        to: dict[str, Expr] = {ref.name: source.column(c) for ref, c in zip(refs, source.columns, strict=True)}

        def over(expr: Expr) -> Expr:
            return replaced(
                self._grouped(expr, select.groups, node, self.scope),
                lambda part: to.get(part.name) if isinstance(part, Column) else None,
            )

        binder = replace(self._subqueries(Joined((source,), scope=self.scope)), over=over)
        for i, asked in enumerate(self.asked):
            to[subquery_ref(i, asked.type).name] = binder.answer(asked)
        having = () if select.having is None else logic.conjuncts_of(over(select.having))
        entries = tuple(Entry("", item.name, over(item.expr)) for item in select.items)
        joined = replace(binder.joined, scope=Scope(entries))
        joined = lowered(replace(joined, conjuncts=(*joined.conjuncts, *having)), self.views, None)
        items = tuple(Item(entry.name, entry.expr) for entry in joined.scope.entries)
        made = Select("bag", joined.sources, joined.conjuncts, items, absent=joined.absent)
        return replace(made, optional=joined.optional)

    def _collector(self, scope: Scope, grouped: bool, grouping: Callable[[Node], Expr]) -> Collector:
        text = self.views.text
        binder = Binder(text, lambda c: scope.resolve(text, c), "SELECT", subquery=self._subquery)
        return Collector(binder, grouped, grouping)

    def _sets(self, by: Written, scope: Scope) -> GroupingSets:
        """The grouping sets of GROUP BY. Positions and aliases refer to the list as it reads without the sets."""
        items, nodes = self._items(scope, self._collector(scope, True, lambda _: grouping_ref()), None)
        forms = forms_of(self.views.text, self.node.expressions, scope)
        bound = self._bound_groups(by, scope, items, nodes)
        found = [(i, node, forms.of(node) if place is None else forms.items[place]) for i, node, place in bound]
        return grouping_sets(self.views.text, by, forms, found)

    def _items(
        self, scope: Scope, collector: Collector, sets: GroupingSets | None
    ) -> tuple[tuple[Item, ...], tuple[Node, ...]]:
        """The SELECT list with ``*`` expanded, and the node behind each item."""
        whole = None if sets is None else sets.of
        text = self.views.text
        items: list[Item] = []
        nodes: list[Node] = []
        aliases: dict[str, Expr] = {}
        for node in self.node.expressions:
            if is_star(node):
                for entry in columns_of(text, node, scope):
                    found = None if sets is None else sets.reference(column_form(entry))
                    items.append(Item(entry.name, found or entry.expr))
                    nodes.append(node)
                continue
            # A name that FROM lacks may be an alias to its left in the list.
            within = scope.with_aliases(dict(aliases))
            resolve = partial(within.resolve, text)
            binder = Binder(text, resolve, "SELECT", collector.bind, self._subquery, whole)
            name = node.alias if isinstance(node, exp.Alias) else _own_name(text, node)
            items.append(Item(name, binder.bind(node)))
            nodes.append(node)
            if isinstance(node, exp.Alias):
                aliases.setdefault(name.lower(), items[-1].expr)
        return tuple(items), tuple(nodes)

    def _groups(
        self, by: Written | None, scope: Scope, items: tuple[Item, ...], nodes: tuple[Node, ...]
    ) -> tuple[Item, ...]:
        """The group expressions, each once."""
        chosen: dict[tuple[object, ...], Item] = {}
        for item, node, _ in () if by is None else self._bound_groups(by, scope, items, nodes):
            check_group(self.views.text, item, node)
            chosen.setdefault(key(item.expr), item)
        return tuple(chosen.values())

    def _bound_groups(
        self, by: Written, scope: Scope, items: tuple[Item, ...], nodes: tuple[Node, ...]
    ) -> list[tuple[Item, Node, int | None]]:
        """The expressions of GROUP BY, and for each one given by number its position in the list."""
        text = self.views.text
        group = self.node.args["group"]
        if group.args.get("all"):
            listed = enumerate(zip(items, nodes, strict=True))
            return [(item, node, i) for i, (item, node) in listed if not has_aggregate(item.expr)]
        if not group.expressions:
            raise text.error(group, "GROUP BY needs columns or expressions")
        within = scope.with_aliases(_aliases(items, nodes))
        binder = Binder(text, lambda c: within.resolve(text, c), "GROUP BY", subquery=self._subquery)
        bound: list[tuple[Item, Node, int | None]] = []
        for node in by.nodes:
            if isinstance(node, exp.Literal) and not node.is_string:
                place = self.views.position(node, items, "GROUP BY")
                bound.append((items[place], node, place))
            else:
                expr = binder.bind(node)
                names = [i.name for i in items if key(i.expr) == key(expr)]
                bound.append((Item(names[0] if names else text.of(node), expr), node, None))
        return bound

    def _grouped(self, expr: Expr, groups: tuple[Item, ...], node: Node, scope: Scope) -> Expr:
        made = over_groups(expr, groups)
        loose = ungrouped(made)
        if loose is None:
            return made
        raise _ungrouped(self.views.text, self._naming(loose, node, scope), name_of(loose.name))

    def _refuse_ungrouped(
        self,
        nodes: Iterable[Node],
        groups: tuple[Item, ...],
        scope: Scope,
        sets: GroupingSets | None,
        shown: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Raise SqlError for an ungrouped column that the bound expression lacks, since the value does not depend on
        it: ``COALESCE(1, b)``. ``groups`` are all expressions of GROUP BY, constants included; ``shown``: names that
        denote a column of the list before one of FROM."""
        text = self.views.text
        known = {key(group.expr) for group in groups}

        def subquery(node: Node, bind: Callable[[Node], Expr]) -> Expr:
            value = self._value_of_row(node)
            if value is None:
                raise text.error(node, "a subquery of the groups, which is no group")
            return value

        binder = Binder(text, lambda c: scope.resolve(text, c), "SELECT", subquery=subquery)

        def is_group(part: Node) -> bool:
            if sets is not None:
                return sets.of(part, shown) is not None
            try:
                return key(binder.bind(part)) in known
            except SqlError:
                return False

        for node in nodes:
            # Columns that stand by themselves are in the bound expression.
            for column in () if is_star(node) or isinstance(node.unalias(), exp.Column) else columns_outside(node):
                # Another name is an alias: of an expression that is checked where it stands.
                found = None if not column.table and column.name.lower() in shown else scope.find(column)
                if found is None or (sets is None and ungrouped(over_groups(found.expr, groups)) is None):
                    continue
                part: Node = column
                while not is_group(part):
                    if part is node or part.parent is None:
                        raise _ungrouped(text, column, found.name)
                    part = part.parent

    def _naming(self, column: Column, node: Node, scope: Scope) -> Node:
        """The part of the text that names the column."""
        for part in node.find_all(exp.Column):
            if isinstance(part.this, exp.Identifier):
                try:
                    if any(n == column.name for n in _names_in(scope.resolve(self.views.text, part))):
                        return part
                except SqlError:
                    continue
        return node


def _query_of(view: PlainView) -> tuple[exp.CTE, Mapping[str, _Cte], None, SqlText]:
    """The query of a plain view, as a WITH query of a text of its own."""
    text = SqlText(view.sql)
    node = parse(text)[0]
    names = node.this.expressions if isinstance(node.this, exp.Schema) else []
    alias = exp.TableAlias(this=exp.to_identifier(view.name), columns=names)
    return exp.CTE(this=node.args["expression"], alias=alias), {}, None, text


def _rows_ask(select: exp.Select) -> Iterator[Node]:
    """The subqueries of a SELECT that are values of the rows of its join: those in GROUP BY and in aggregate calls,
    and where it does not group, those of its list and of ORDER BY."""
    parts = [*select.expressions, *(select.args[clause] for clause in ("having", "order") if select.args.get(clause))]
    group = select.args.get("group")
    grouped = bool(group or select.args.get("having")) or any(_calls(part) for part in parts)
    waiting = [(part, not grouped) for part in parts] + ([] if group is None else [(group, True)])
    while waiting:
        node, of_rows = waiting.pop()
        if is_asked(node):
            if of_rows:
                yield node
            continue
        within = of_rows or is_aggregate(node)
        waiting += [(inner, within) for inner in node.iter_expressions()]


def _calls(node: Node) -> bool:
    """True if an expression has an aggregate call outside of subqueries."""
    if is_aggregate(node):
        return True
    return not is_asked(node) and any(map(_calls, node.iter_expressions()))


def _ungrouped(text: SqlText, place: Node, name: str) -> SqlError:
    return text.error(
        place,
        f"column {name} is neither in GROUP BY nor inside an aggregate function; "
        f"add it to GROUP BY, or take MIN({name})",
    )


def _with_names(view: ViewDef, columns: tuple[ColumnDef, ...]) -> ViewDef:
    blocks = tuple(
        replace(block, outputs=tuple(replace(o, name=c.name) for o, c in zip(block.outputs, columns, strict=True)))
        for block in view.blocks
    )
    return replace(view, columns=columns, blocks=blocks)


def _aliases(items: Sequence[Item], nodes: Sequence[Node]) -> dict[str, Expr]:
    """Aliases of the SELECT list by lower-case name; the first wins where several are equal."""
    named = reversed([(item, one) for item, one in zip(items, nodes, strict=True) if isinstance(one, exp.Alias)])
    return {item.name.lower(): item.expr for item, _ in named}


def _no_sets(text: SqlText) -> Callable[[Node], Expr]:
    """Refuses GROUPING where there are no grouping sets."""

    def refused(node: Node) -> Expr:
        name = node.name.upper()
        raise text.error(node, f"{name} is about grouping sets; use it with GROUP BY ROLLUP, CUBE or GROUPING SETS")

    return refused


def _own_name(text: SqlText, node: Node) -> str:
    """The name of a column without AS: the column's own name, or the text of the expression."""
    return node.name if isinstance(node, exp.Column) else text.of(node)


def _names_in(expr: Expr) -> list[str]:
    if isinstance(expr, Column):
        return [expr.name]
    return [] if isinstance(expr, Literal) else [n for arg in expr.args for n in _names_in(arg)]
