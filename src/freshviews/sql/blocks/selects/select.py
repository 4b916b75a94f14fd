"""Binds one SELECT: FROM, WHERE, the SELECT list, GROUP BY and HAVING."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate

from sqlglot import exp

from freshviews.catalog.definitions import SortPlace
from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.expr.nodes import columns_of as names_in
from freshviews.query.block import SET
from freshviews.sql.blocks.aggregates import Collector, is_matrix
from freshviews.sql.blocks.bound import (
    Bound,
    Item,
    Select,
    aggregate_ref,
    distinct_over,
    group_ref,
    grouping_ref,
    has_aggregate,
    subquery_ref,
)
from freshviews.sql.blocks.enclosing import Names
from freshviews.sql.blocks.forms import column_form, forms_of
from freshviews.sql.blocks.grouping_sets import (
    GroupingSets,
    Written,
    check_group,
    grouping_sets,
    written,
)
from freshviews.sql.blocks.joins.dependent import as_source, tied, values_of
from freshviews.sql.blocks.joins.from_clause import FromBinder, columns_read
from freshviews.sql.blocks.joins.lowering import Read, lowered
from freshviews.sql.blocks.joins.tree import Joined, all_aliases
from freshviews.sql.blocks.limit import Clause, places_of
from freshviews.sql.blocks.selects.groups import naming_groups, over_groups_of, refuse_ungrouped
from freshviews.sql.blocks.selects.rows_ask import (
    has_call,
    is_all,
    listed_groups,
    subqueries_of_rows,
    subqueries_within,
    windows_of,
    within_others,
)
from freshviews.sql.blocks.selects.spelled import spell_groups
from freshviews.sql.blocks.selects.with_queries import Cte, Queries
from freshviews.sql.blocks.subqueries.subquery import SubqueryBinder, SubqueryValue
from freshviews.sql.blocks.text_aggregates import with_provenance
from freshviews.sql.blocks.windows.binding import Window, needs_all_columns, number_equal_rows
from freshviews.sql.blocks.windows.nearest import nearest
from freshviews.sql.blocks.windows.rows import with_occurrence_numbers
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import key, rejects_null, renamed, replaced
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.names.marks import is_marked
from freshviews.sql.names.scope import Entry, Scope, alias_of, table_scope
from freshviews.sql.names.star import columns_of, is_star, name_stars, replacements_of, values_of_star
from freshviews.sql.text.clock import reads_clock
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.pipes import is_position
from freshviews.sql.text.terms import has_subquery, terms_of
from freshviews.types import BIGINT


@dataclass
class SelectBinder:
    """Binds one SELECT. ``bind`` is the entry."""

    views: Queries
    node: exp.Select
    ctes: Mapping[str, Cte]
    around: Names | None = None
    values: dict[int, str] = field(default_factory=dict)
    """The names that the values of subqueries have in the scope, by node."""
    scope: Scope = field(default_factory=Scope)
    rows: Joined = field(default_factory=Joined)
    """The join of FROM and WHERE."""
    asked: list[SubqueryValue | Window] = field(default_factory=list)
    """The subqueries of a grouped SELECT that are values of its groups."""
    listed: list[Node] = field(default_factory=list)
    """The expressions of the list with subqueries that GROUP BY names."""
    by_all: bool = False
    """True for GROUP BY ALL."""
    made: list[str] = field(default_factory=list)
    """Aliases of the sources made of subqueries."""

    def bind(self, clause: Clause | None) -> tuple[Select, tuple[SortPlace, ...], int]:
        """The SELECT, the positions of the ORDER BY columns in its list, and the length of the list as written.

        The SELECT's list also has the columns that only ORDER BY names.
        """
        text, node = self.views.text, self.node
        joined = self._from()
        self.rows, self.scope = joined, joined.scope
        group = node.args.get("group")
        having = node.args.get("having")
        by = None if group is None else written(text, group)
        if by is not None:
            self._spell_groups(by, joined.scope)
        sets = None if by is None or by.sets is None else self._sets(by, joined.scope)
        is_global = by is None or by.is_global or (self.by_all and not self._has_groups(joined.scope))
        kind = "global" if is_global else "groups"
        collector = self._collector(joined.scope, kind == "groups", _no_sets(text) if sets is None else sets.grouping)
        items, nodes = self._items(joined.scope, collector, sets)
        named = _aliases(items, nodes)
        every = self._groups(by, joined.scope, items, nodes) if sets is None else ()
        if self.by_all and kind == "groups" and not every:
            what = "GROUP BY ALL over aggregates and aliases of them"
            raise text.unsupported(node.args["group"], what, "leave it out")
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
            test = over_groups_of(self.views.text, binder.condition(having.this, True), known, having.this, scope)
        kept = self._qualified(joined.scope.with_aliases(named), collector, sets, known)
        join = joined.sources, joined.conjuncts
        if not (collector.calls or group is not None or having is not None):
            select = Select("bag", *join, items, absent=joined.absent, optional=joined.optional)
            if kept is not None:
                select = replace(select, conjuncts=(*select.conjuncts, *logic.conjuncts_of(kept)))
            return distinct_over(select) if node.args.get("distinct") else select, places, columns
        over = tuple(
            replace(item, expr=over_groups_of(self.views.text, item.expr, known, one, joined.scope))
            for item, one in zip(items, nodes, strict=True)
        )
        in_text = (*nodes[:columns], *([] if having is None else [having.this]))
        refuse_ungrouped(text, in_text, every, joined.scope, sets, self._value_of_row)
        if clause is not None:
            shown = {item.name.lower(): i for item, i in zip(items[:columns], _places_of_forms(nodes), strict=False)}
            ordered = (one.this for one in clause.order)
            refuse_ungrouped(text, ordered, every, joined.scope, sets, self._value_of_row, shown)
        calls = with_provenance(collector.calls, joined, self.views, text, node)
        select = Select(kind, *join, over, groups, calls, test, joined.absent, optional=joined.optional)
        if sets is not None and kind == "groups":
            select = replace(select, sets=sets.sets)
        if self.asked:
            select = self._with_subqueries(select, kept)
            return distinct_over(select) if node.args.get("distinct") else select, places, columns
        if not node.args.get("distinct"):
            return select, places, columns
        grouped = Bound((select,))
        return distinct_over(self.views.rows_of(grouped, node, self.around)), places, columns

    def _qualified(
        self, scope: Scope, collector: Collector, sets: GroupingSets | None, known: tuple[Item, ...]
    ) -> Expr | None:
        """The predicate of QUALIFY. Raises SqlError for a window function in HAVING, or for QUALIFY without one."""
        text, node = self.views.text, self.node
        for window in windows_of(node, ("having",)):
            raise text.error(
                window,
                "a window function cannot stand in HAVING; write the window function in SELECT, ORDER BY or QUALIFY",
            )
        qualify = node.args.get("qualify")
        if qualify is None:
            return None
        if not windows_of(node):
            raise text.error(qualify, "QUALIFY needs a window function; filter rows with WHERE, and groups with HAVING")
        whole = None if sets is None else sets.of
        resolve = partial(scope.resolve, text)
        binder = Binder(text, resolve, "QUALIFY", collector.bind, self._subquery, whole)
        return over_groups_of(text, binder.condition(qualify.this), known, qualify.this, scope) if known else (
            binder.condition(qualify.this)
        )

    def _order(
        self,
        clause: Clause,
        scope: Scope,
        items: tuple[Item, ...],
        nodes: tuple[Node, ...],
        collector: Collector,
        sets: GroupingSets | None,
    ) -> tuple[tuple[SortPlace, ...], tuple[Item, ...], tuple[Node, ...]]:
        """The position in the list of each ORDER BY column, and the list and its nodes, extended by missing columns.

        A name denotes a column of the list rather than one of FROM.
        """
        text = self.views.text
        names = [item.name.lower() for item in items]
        shown = {name: i for i, name in enumerate(names) if names.count(name) == 1}

        def resolve(column: exp.Column) -> Expr:
            place = None if column.table else shown.get(column.name.lower())
            return scope.resolve(text, column) if place is None else items[place].expr

        forms = _places_of_forms(nodes)
        whole = None if sets is None else partial(sets.of, shown={name: forms[i] for name, i in shown.items()})
        binder = Binder(text, resolve, "ORDER BY", collector.bind, self._subquery, whole)
        places, added, more = places_of(clause, items, binder, lambda n: self.views.position(n, items, "ORDER BY"))
        if added and self.node.args.get("distinct"):
            raise text.error(
                more[0],
                "ORDER BY of SELECT DISTINCT accepts only columns of the list; add this column to the list, or use "
                "GROUP BY",
            )
        return places, (*items, *added), (*nodes, *more)

    def _has_groups(self, scope: Scope) -> bool:
        """True if GROUP BY ALL has a group: a column or an expression of the list without an aggregate."""
        return any(
            bool(columns_of(self.views.text, one, scope)) if is_star(one) else not has_call(one)
            for one in self.node.expressions
        )

    def _from(self) -> Joined:
        binder = FromBinder(
            self.views.text,
            lambda table, around: self.views.relation(table, self.ctes, around),
            lambda query, names, joined: self.views.subquery(query, self.ctes, names, joined),
            self.views,
            columns_read(self.node, True),
            self._where,
            self._value,
            partial(nearest, around=self.around, views=self.views),
            self.around,
        )
        joined = binder.bind(self.node)
        where = self.node.args.get("where")
        terms = [*binder.asked, *([] if where is None else [where.this])]
        if terms:
            joined = self._where(joined, terms)
        self.by_all = is_all(self.node, {entry.name.lower() for entry in joined.scope.visible})
        self.listed = self._listed_groups(joined.scope)
        asked = list(subqueries_of_rows(self.node, self.listed))
        if any(isinstance(one, exp.Window) for one in asked):
            windows = windows_of(self.node)
            for window in windows:
                name_stars(self.views.text, window, joined.scope)
            joined = self._with_values(joined, subqueries_within([*windows, *(self.node.args.get("windows") or ())]))
            for inner in within_others(windows):
                joined = self._with_values(self._rows_of_windows(joined, windows), inner)
            joined = self._rows_of_windows(joined, windows)
        joined = self._with_values(joined, asked)
        joined = lowered(self._tied(joined), self.views, self._read())
        never_null = frozenset[str]().union(*map(rejects_null, joined.conjuncts))
        return replace(joined, scope=joined.scope.knowing(never_null))

    def _where(self, joined: Joined, where: Sequence[Node]) -> Joined:
        """Add the predicates of WHERE to the join; subqueries become joins or absent sources."""
        text = self.views.text
        asking = [term for whole in where for term in terms_of(whole) if has_subquery(term)]
        plain = [t for whole in where for t in (terms_of(whole) if asking else [whole]) if not has_subquery(t)]
        conjuncts: list[Expr] = []
        for term in plain:
            binder = Binder(text, lambda c: joined.scope.resolve(text, c), "WHERE")
            conjuncts += logic.conjuncts_of(binder.condition(term))
        if asking:
            known = frozenset[str]().union(*map(rejects_null, (*joined.conjuncts, *conjuncts)))
            bound = replace(self._subqueries(joined), never_null=known, known=tuple(conjuncts))
            for term in asking:
                bound.read = columns_read(self.node, True, term)
                bound.bind(term)
            joined, conjuncts = bound.joined, [one for one in conjuncts if one not in bound.applied]
        return replace(joined, conjuncts=(*joined.conjuncts, *conjuncts))

    def _value(self, joined: Joined, term: Node) -> tuple[Joined, Expr]:
        """A predicate with subqueries as a value of each row of the join, and the join with their sources."""
        bound = self._subqueries(joined)
        value = Binder(self.views.text, bound.names, "ON", subquery=bound.value).condition(term)
        return bound.joined, value

    def _subqueries(self, joined: Joined) -> SubqueryBinder:
        names = Names(
            self.views.text, joined.scope, lambda columns: values_of(joined, columns, self.around, self.views)
        )
        return SubqueryBinder(
            self.views.text, self.views, lambda q, n: self.views.bind(q, self.ctes, n), names, joined, made=self.made
        )

    def _tied(self, joined: Joined) -> Joined:
        """The join, whose outer joins no longer name columns of enclosing queries."""
        return joined if self.around is None else tied(joined, self.around, self.views)

    def _rows_of_windows(self, joined: Joined, windows: Sequence[exp.Window]) -> Joined:
        """The rows of a join for window functions; equal rows are numbered if several functions distinguish them."""
        text = self.views.text
        # All columns of a row distinguish it from others with the same place in the order.
        read = None if any(needs_all_columns(text, one) for one in windows) else self._read()
        joined = self._rows_of_one(joined, read)
        return with_occurrence_numbers(joined, self.views) if number_equal_rows(text, windows) else joined

    def _rows_of_one(self, joined: Joined, read: Read) -> Joined:
        """The rows of a join as one source. If they depend on enclosing queries, it has a column for each column of
        these that they name, and a predicate that ties it to the row."""
        joined = self._tied(joined)
        entries = (*joined.scope.entries, *joined.scope.visible)
        apart = joined.conjuncts or joined.left or joined.full or joined.absent or joined.optional
        if len(joined.sources) == 1 and not apart and all(isinstance(one.expr, Column) for one in entries):
            return replace(joined, scope=replace(joined.scope, outer=self.around))
        made = as_source(joined, self.around, self.views, read, all_aliases(joined))
        return replace(made, scope=replace(made.scope, outer=self.around))

    def _read(self) -> Read:
        """The columns that the SELECT reads of its rows, and the values of its subqueries."""
        read = columns_read(self.node, False)
        return None if read is None else {*read, *(("", name) for name in self.values.values())}

    def _with_values(self, joined: Joined, nodes: Sequence[Node]) -> Joined:
        """The join with the sources of subqueries that are values of its rows. The scope has these values, under names
        that no column has."""
        if not nodes:
            return joined
        known = {entry.name: entry.expr for entry in joined.scope.entries}
        binder = replace(self._subqueries(joined), rows=joined.sources[0] if joined.sources else None)
        binder.around = _keys_around(joined.conjuncts)

        def value(node: Node, bind: Callable[[Node], Expr]) -> Expr:
            return known.get(self.values.get(id(node), "")) or binder.value(node, bind)

        bind = Binder(self.views.text, binder.names, "SELECT", subquery=value).bind
        entries: list[Entry] = []
        made: dict[Node, str] = {}
        for node in nodes:
            # Equal subqueries are one: the same value occurs in GROUP BY and in the list.
            same = node.unnest()
            if same not in made:
                made[same] = f"\x1dvalue{len(set(self.values.values()))}"
                entries.append(Entry("", made[same], binder.value(node, bind)))
            self.values[id(node)] = made[same]
        scope = replace(joined.scope, entries=(*joined.scope.entries, *entries))
        return replace(binder.joined, scope=scope)

    def _subquery(self, node: Node, bind: Callable[[Node], Expr]) -> Expr:
        """The value of a subquery: of a row of the join, or of a group."""
        known = self._value_of_row(node)
        if known is not None:
            return known
        if isinstance(node, exp.Window):
            inner = subqueries_within([node, *(self.node.args.get("windows") or ())])
            if inner or len(list(node.find_all(exp.Window))) > 1:
                what = f"a {'subquery' if inner else 'window function'} in a window function of a SELECT that groups"
                raise self.views.text.unsupported(node, what, "group in a subquery of FROM")
        of_rows = self.rows.sources[0] if isinstance(node, exp.Window) else None
        self.asked.append(replace(self._subqueries(self.rows), rows=of_rows).ask(node, bind))
        return subquery_ref(len(self.asked) - 1, self.asked[-1].type)

    def _listed_groups(self, scope: Scope) -> list[Node]:
        """The expressions of the list with subqueries that GROUP BY names by ALL, by number or by alias."""
        if not any(map(has_subquery, self.node.expressions)) or any(map(is_matrix, self.node.expressions)):
            return []
        found = listed_groups(self.node, self._each_listed(scope), _names_in_from(scope))
        return [one for one in found if one.find(exp.Window) is None]

    def _each_listed(self, scope: Scope) -> list[Node]:
        """The node of each column of the list."""
        listed: list[Node] = []
        for node in self.node.expressions:
            listed += [node] * (len(columns_of(self.views.text, node, scope)) if is_star(node) else 1)
        return listed

    def _spell_groups(self, by: Written, scope: Scope) -> None:
        """Rewrite the expressions that Spark takes for a group to the text of GROUP BY."""
        if any(map(is_matrix, self.node.expressions)):
            return
        named = [one.unalias() for one in listed_groups(self.node, self._each_listed(scope), _names_in_from(scope))]
        groups = [one for one in (*by.nodes, *named) if not isinstance(one, (exp.Column, exp.Literal, exp.Star))]
        groups = [one for one in groups if not has_subquery(one)]
        if groups:
            bind = Binder(self.views.text, partial(scope.resolve, self.views.text), "SELECT").bind
            spell_groups(self.node, groups, forms_of(self.views.text, self.node.expressions, scope), bind)

    def _value_of_row(self, node: Node) -> Expr | None:
        """The value of a subquery that is a value of the rows of the join, or equals one in GROUP BY."""
        group = self.node.args.get("group")
        groups = [*([] if group is None else [group]), *self.listed]
        same_group = [one for part in groups for one in part.find_all(type(node)) if one.unnest() == node.unnest()]
        name = next((self.values[id(one)] for one in (node, *same_group) if id(one) in self.values), None)
        return next((entry.expr for entry in self.scope.entries if entry.name == name), None)

    def _with_subqueries(self, select: Select, qualify: Expr | None) -> Select:
        """A grouped SELECT as a view of its groups and aggregates, joined with its subqueries."""
        node = self.node
        lacking = {i for one in select.sets for i in range(len(select.groups)) if i not in one}
        refs = [group_ref(i, group.expr) for i, group in enumerate(select.groups)]
        refs = [replace(ref, nullable=ref.nullable or i in lacking) for i, ref in enumerate(refs)]
        refs += [Column(SET, BIGINT, False)] if select.sets else []
        refs += [aggregate_ref(i, call, select.kind == "groups") for i, call in enumerate(select.aggregates)]
        inner = replace(select, items=tuple(Item(f"c{i}", ref) for i, ref in enumerate(refs, 1)), having=None)
        if any(isinstance(one, Window) for one in self.asked) and select.having is not None:
            # Window functions are computed over the groups that HAVING keeps.
            if has_subquery(node.args["having"]):
                what = "a subquery in HAVING of a SELECT with window functions"
                raise self.views.text.unsupported(node.args["having"], what, "group in a subquery of FROM")
            inner, select = replace(inner, having=select.having), replace(select, having=None)
        rows = _renamed(self.views.rows_of(Bound((inner,)), node, self.around), "grouped")
        to: dict[str, Expr] = {ref.name: item.expr for ref, item in zip(refs, rows.items, strict=True)}

        def over(expr: Expr) -> Expr:
            return replaced(
                over_groups_of(self.views.text, expr, select.groups, node, self.scope),
                lambda part: to.get(part.name) if isinstance(part, Column) else None,
            )

        binder = replace(self._subqueries(Joined(rows.sources, rows.conjuncts, self.scope)), over=over, made=[])
        binder.rows, binder.around = rows.sources[0], _keys_around(rows.conjuncts)
        if select.having is not None:
            select = self._selected_by_clock(select, binder)
        for i, asked in enumerate(self.asked):
            if reads_clock(asked.node):
                continue
            if isinstance(asked, SubqueryValue):
                asked = replace(asked, bound=naming_groups(asked.bound, select.groups, refs[: len(select.groups)]))
            to[subquery_ref(i, asked.type).name] = binder.answer(asked)
        having = () if select.having is None else logic.conjuncts_of(over(select.having))
        having += () if qualify is None else logic.conjuncts_of(over(qualify))
        entries = tuple(Entry("", item.name, over(item.expr)) for item in select.items)
        joined = replace(binder.joined, scope=Scope(entries))
        joined = self._tied(replace(joined, conjuncts=(*joined.conjuncts, *having)))
        joined = lowered(joined, self.views, None)
        items = tuple(Item(entry.name, entry.expr) for entry in joined.scope.entries)
        made = Select("bag", joined.sources, joined.conjuncts, items, absent=joined.absent)
        return replace(made, optional=joined.optional)

    def _selected_by_clock(self, select: Select, binder: SubqueryBinder) -> Select:
        """The SELECT without the terms of HAVING that read the clock, by which ``binder`` selects groups."""
        asked = {subquery_ref(i, one.type).name: one for i, one in enumerate(self.asked)}
        values = {name: one for name, one in asked.items() if isinstance(one, SubqueryValue) and reads_clock(one.node)}
        assert select.having is not None
        kept = []
        # A selection keeps the columns that the scope has.
        binder.joined = replace(binder.joined, scope=table_scope(binder.joined.sources[0]))
        for term in logic.conjuncts_of(select.having):
            if values.keys().isdisjoint(names_in(term)):
                kept.append(term)
            else:
                binder.select_by_clock(binder.over(term), values)
        binder.joined = replace(binder.joined, scope=self.scope)
        return replace(select, having=logic.all_of(kept) if kept else None)

    def _collector(self, scope: Scope, grouped: bool, grouping: Callable[[Node], Expr]) -> Collector:
        text = self.views.text
        binder = Binder(text, lambda c: scope.resolve(text, c), "SELECT", subquery=self._subquery)
        return Collector(binder, grouped, grouping, lambda node: values_of_star(text, node, scope))

    def _sets(self, by: Written, scope: Scope) -> GroupingSets:
        """The grouping sets of GROUP BY. Its positions and aliases refer to the list as bound without grouping sets."""
        items, nodes = self._items(scope, self._collector(scope, True, lambda _: grouping_ref()), None)
        forms = forms_of(self.views.text, self.node.expressions, scope)
        bound = self._bound_groups(by, scope, items, nodes)
        # The list is bound again with the groups.
        self.asked.clear()
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
        # A name that FROM lacks may be an alias to its left in the list.
        within = scope.with_aliases(aliases)
        for node in self.node.expressions:
            if is_star(node):
                replacing = replacements_of(text, node, scope)
                for entry in columns_of(text, node, scope):
                    found = None if sets is None else sets.reference(column_form(entry))
                    value = replacing.get(entry.name.lower())
                    if value is not None:
                        resolve = partial(scope.resolve, text)
                        found = Binder(text, resolve, "SELECT", collector.bind, self._subquery, whole).bind(value)
                    items.append(Item(entry.name, found or entry.expr))
                    nodes.append(value or node)
                continue
            if is_matrix(node):
                prefix = f"{node.alias}_" if isinstance(node, exp.Alias) else ""
                found_columns = collector.columns(node.this if isinstance(node, exp.Alias) else node)
                items += (Item(prefix + name, expr) for name, expr in found_columns)
                nodes += [node] * len(found_columns)
                continue
            resolve = partial(within.resolve, text)
            binder = Binder(text, resolve, "SELECT", collector.bind, self._subquery, whole)
            name = node.alias if isinstance(node, exp.Alias) else _own_name(text, node, scope)
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
        """The expressions of GROUP BY, each with its position in the list if it is given by number."""
        text = self.views.text
        if self.by_all:
            listed = enumerate(zip(items, nodes, strict=True))
            grouped = ((item, node, i) for i, (item, node) in listed if not has_aggregate(item.expr))
            return [one for one in grouped if not has_call(one[1])]
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


def _keys_around(conjuncts: Sequence[Expr]) -> tuple[Expr, ...]:
    """The columns that equalities tie to enclosing queries."""
    return tuple(one.args[0] for one in conjuncts if isinstance(one, Call) and is_marked(one))


def _renamed(rows: Select, alias: str) -> Select:
    """A SELECT over one source, with another alias for the source."""
    (source,) = rows.sources

    def to(name: str) -> str:
        return alias + name.removeprefix(source.alias) if alias_of(name) == source.alias else name

    return replace(rows.mapped(lambda expr: renamed(expr, to)), sources=(replace(source, alias=alias),))


def _names_in_from(scope: Scope) -> set[str]:
    """The names of columns of FROM, in lower case."""
    return {entry.name.lower() for entry in (*scope.entries, *scope.visible)}


def _aliases(items: Sequence[Item], nodes: Sequence[Node]) -> dict[str, Expr]:
    """Aliases of the SELECT list by lower-case name; the first one if several are equal."""
    named = reversed([(item, one) for item, one in zip(items, nodes, strict=True) if isinstance(one, exp.Alias)])
    return {item.name.lower(): item.expr for item, _ in named}


def _no_sets(text: SqlText) -> Callable[[Node], Expr]:
    """Refuses GROUPING without grouping sets."""

    def refused(node: Node) -> Expr:
        name = node.name.upper()
        raise text.error(node, f"{name} needs grouping sets; use it with GROUP BY ROLLUP, CUBE or GROUPING SETS")

    return refused


def _own_name(text: SqlText, node: Node, scope: Scope) -> str:
    """The name of a column without AS: the column's own name, or the text of the expression."""
    if isinstance(node, exp.Column) and is_position(node):
        entry = scope.at(node)
        return text.of(node) if entry is None else entry.name
    return node.name if isinstance(node, exp.Column) else text.of(node)


def _places_of_forms(nodes: Sequence[Node]) -> list[int]:
    """For each column of the list, its position among the forms of the list; all columns of a matrix have one form."""
    firsts = (one is not last or not is_matrix(one) for one, last in zip(nodes, (None, *nodes), strict=False))
    return [place - 1 for place in accumulate(map(int, firsts))]
