"""Converts a query to bound SELECTs, whose names and types are resolved.

Also makes the internal views that these SELECTs need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from freshviews.catalog.catalog import Catalog, unknown
from freshviews.catalog.definitions import (
    ColumnDef,
    ConstantRow,
    PlainView,
    ReadOrder,
    SetOperation,
    SortPlace,
    TableDef,
    ViewDef,
)
from freshviews.errors import NameProblem
from freshviews.expr.nodes import Call, Column
from freshviews.query.block import Block
from freshviews.sql.blocks.bound import Bound, Item, Select, Sort
from freshviews.sql.blocks.building.block_of_select import with_query_names
from freshviews.sql.blocks.enclosing import Names
from freshviews.sql.blocks.joins.dependent import as_bag, as_optional_source, depends, marked_columns
from freshviews.sql.blocks.limit import Clause, check_operand, clause_of, limited, places_of
from freshviews.sql.blocks.selects.constants import constant_rows
from freshviews.sql.blocks.selects.select import SelectBinder
from freshviews.sql.blocks.selects.with_queries import Cte, query_of, renamed_view
from freshviews.sql.blocks.set_operation import (
    ALL,
    aligned,
    blocks_of,
    everything,
    set_operation,
    typed,
    uniquely_named,
)
from freshviews.sql.blocks.subqueries.correlation import is_one_row
from freshviews.sql.blocks.windows.rows import first_rows
from freshviews.sql.expressions.build import Fault
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.names.scope import Entry, Scope, Source, name_of
from freshviews.sql.text.clock import reads_clock
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import INT

_SET_OPERATIONS = {exp.Union: "union", exp.Except: "except", exp.Intersect: "intersect"}


@dataclass
class ViewBinder:
    """Binds the query of one view. ``internal``: the internal views that the query needs."""

    text: SqlText
    catalog: Catalog
    view: str
    named: bool = False
    """True if the view has a LIMIT and names the strategy that maintains the rows it orders."""
    internal: list[ViewDef] = field(default_factory=list)
    relations: dict[str, None] = field(default_factory=dict)
    """The tables and views that the query and its plain views name."""
    plain: dict[str, Cte] = field(default_factory=dict)
    """The plain views that the query names."""
    _with_view: list[Cte] = field(default_factory=list)
    """The WITH queries that have an internal view."""
    _shared: list[tuple[Select, ViewDef]] = field(default_factory=list)
    """SELECTs with an internal view; equal SELECTs read the same one."""
    outermost: Node | None = None
    """The query without its parentheses; its ORDER BY is the order in which the view is read."""
    order: ReadOrder | None = None

    def whole_query(self, node: Node) -> Bound:
        """The SELECTs of the view's query. Sets ``order``, in which its rows are read."""
        self.outermost = node
        while isinstance(self.outermost, exp.Subquery) and clause_of(self.text, self.outermost) is None:
            self.outermost = self.outermost.this
        return self.bind(node)

    def bind(self, node: Node, ctes: Mapping[str, Cte] | None = None, around: Names | None = None) -> Bound:
        """The SELECTs of a query.

        ``around``: the names of the enclosing query, which WHERE may use. Raises SqlError or UnsupportedSql with the
        place.
        """
        outer = ctes or {}
        known = self._with(node, outer, around)
        bound = self._query(node, known, around)
        if known is not outer:
            self._bind_unused(node.args["with_"], known)
        return bound

    def _query(self, node: Node, ctes: Mapping[str, Cte], around: Names | None) -> Bound:
        """Bind a query, given its WITH queries."""
        if isinstance(node, (exp.Subquery, exp.SetOperation)):
            clause = clause_of(self.text, node)
            if isinstance(node, exp.Subquery):
                bound = self.bind(node.this, ctes, around)
            else:
                bound = self._set_operation(node, ctes, around)
            if clause is not None and clause.limit is None:
                return self._ordered_rows(bound, clause, node, around)
            return bound if clause is None else self._first_of(bound, clause, node, around)
        if isinstance(node, exp.Select):
            _check_select(self.text, node)
            clause = clause_of(self.text, node)
            select, places, columns = SelectBinder(self, node, ctes, around).bind(clause)
            bound = Bound((select,))
            if clause is not None and clause.limit is None:
                return self._in_order(bound, places, columns, node, around)
            return bound if clause is None else self._limited(bound, clause, places, columns, node, around)
        if isinstance(node, exp.Values):
            source = self.source_of(self.constant_view(*constant_rows(self.text, node)))
            return Bound((Select("bag", (source,), (), tuple(Item(c.name, source.column(c)) for c in source.columns)),))
        what = type(node).__name__.upper()
        instead = "SELECT, VALUES and UNION [ALL], EXCEPT and INTERSECT of SELECTs are accepted"
        raise self.text.unsupported(node, what, instead)

    def internal_view(self, bound: Bound) -> ViewDef:
        """Make an internal view of the query."""
        if depends(bound):
            columns = marked_columns(expr for select in bound.selects for expr in select.exprs)
            what = f"a subquery that names {name_of(next(iter(columns)))}, of the enclosing query, at this place"
            raise self.text.unsupported(self.outermost or exp.Null(), what, "name the column in WHERE of the subquery")
        return self.view_of(bound.columns, blocks_of(bound, self), bound.combined)

    def view_of(
        self, columns: tuple[ColumnDef, ...], blocks: Sequence[Block], combined: SetOperation | None = None
    ) -> ViewDef:
        """Make an internal view of blocks."""
        name = f"{self.view}#{len(self.internal) + 1}"
        view = ViewDef(name, columns, with_query_names(blocks, name), internal=True, combined=combined)
        self.internal.append(view)
        return view

    def shared_source(self, values: Select) -> Source:
        """A SELECT as a source: one internal view for equal SELECTs."""
        known = next((view for select, view in self._shared if select == values), None)
        if known is None or not any(known is view for view in self.internal):
            known = self.internal_view(uniquely_named(Bound((values,))))
            self._shared.append((values, known))
        return self.source_of(known)

    def constant_view(self, columns: tuple[ColumnDef, ...], rows: tuple[ConstantRow, ...]) -> ViewDef:
        """Make an internal view of constant rows, or return an existing one."""
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
        """An internal view as a source, whose alias callers replace."""
        return Source(view.name.split("#")[0], view.name, view.columns)

    def is_positive(self, source: Source) -> bool:
        """True if the source is a table without rows of negative multiplicity."""
        found = self.catalog.relation(source.relation)
        return isinstance(found, TableDef) and not found.trusted

    def reads_trusted(self, source: Source) -> bool:
        """True if rows of the source are made of rows of a trusted table."""
        own = {one.name: one for one in self.internal}
        left, seen = [source.relation], set[str]()
        while left:
            name = left.pop()
            found = own.get(name) or self.catalog.relation(name)
            if isinstance(found, TableDef) and found.trusted:
                return True
            if isinstance(found, ViewDef) and name not in seen:
                left += found.inputs
            seen.add(name)
        return False

    def keys_of(self, source: Source) -> tuple[tuple[str, ...], ...]:
        """The keys of a table or view, by the names of their columns."""
        found = next((one for one in self.internal if one.name == source.relation), None)
        known = found or self.catalog.relation(source.relation)
        return () if known is None else known.checked_keys

    def identity_of(self, source: Source) -> tuple[str, ...]:
        """The columns that identify a row of a source: the primary key of a table, the groups of a view, or all."""
        found = self.catalog.relation(source.relation)
        keys = () if found is None else found.checked_keys
        if isinstance(found, TableDef):
            keys = found.keys if found.has_primary_key else ()
        return keys[0] if keys else tuple(column.name for column in source.columns)

    def _with(self, node: Node, outer: Mapping[str, Cte], around: Names | None) -> Mapping[str, Cte]:
        clause = node.args.get("with_")
        if clause is None:
            return outer
        if clause.args.get("recursive"):
            raise self.text.unsupported(clause, "WITH RECURSIVE", "write WITH queries that do not refer to themselves")
        known = dict(outer)
        seen: set[str] = set()
        for cte in clause.expressions:
            name = cte.alias.lower()
            if name in seen:
                raise self.text.error(cte, f"{cte.alias} is given twice in WITH; rename one of the queries")
            seen.add(name)
            known[name] = Cte(cte, dict(known), around=around)
        return known

    def _bind_unused(self, clause: exp.With, known: Mapping[str, Cte]) -> None:
        """Check the WITH queries that nothing reads: bind them, and drop their internal views."""
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

    def _first_of(self, bound: Bound, clause: Clause, node: Node, around: Names | None) -> Bound:
        """The first rows of a set operation or of a query in parentheses, ordered by its columns."""
        whole = self.rows_of(bound, node, around)
        places, added = self._places_of(clause, whole.items)
        made = Bound((replace(whole, items=(*whole.items, *added)),))
        return self._limited(made, clause, places, len(whole.items), node, around)

    def _places_of(self, clause: Clause, items: tuple[Item, ...]) -> tuple[tuple[SortPlace, ...], tuple[Item, ...]]:
        """The positions of an ORDER BY over these columns alone, and the columns that it adds to them."""
        entries = tuple(Entry("", item.name, item.expr) for item in items)
        scope = Scope(entries, entries)
        binder = Binder(self.text, lambda c: scope.resolve(self.text, c), "ORDER BY")
        places, added, _ = places_of(clause, items, binder, lambda n: self.position(n, items, "ORDER BY"))
        return places, added

    def _ordered_rows(self, bound: Bound, clause: Clause, node: Node, around: Names | None) -> Bound:
        """A set operation or a query in parentheses, with ORDER BY and without LIMIT."""
        shown = tuple(Item(one.name, Column(f"{i}", one.type, one.nullable)) for i, one in enumerate(bound.columns))
        places, added = self._places_of(clause, shown)
        if added and node is self.outermost:
            whole = self.rows_of(bound, node, around)
            places, added = self._places_of(clause, whole.items)
            bound = Bound((replace(whole, items=(*whole.items, *added)),))
        return self._in_order(bound, places, len(shown), node, around)

    def _in_order(
        self, bound: Bound, places: tuple[SortPlace, ...], columns: int, node: Node, around: Names | None
    ) -> Bound:
        """A query with ORDER BY and without LIMIT: the order in which the view is read, without effect in a subquery.

        Columns after the first ``columns`` serve only the order.
        """
        hidden = len(bound.columns) > columns
        relation = ""
        if hidden and node is self.outermost:
            bound = Bound((self.rows_of(bound, node, around),))
            relation = self.internal[-1].name
        if hidden:
            bound = Bound(tuple(replace(select, items=select.items[:columns]) for select in bound.selects))
        if node is self.outermost and places:
            self.order = ReadOrder(places, relation)
        return bound

    def _limited(
        self,
        bound: Bound,
        clause: Clause,
        places: tuple[SortPlace, ...],
        columns: int,
        node: Node,
        around: Names | None,
    ) -> Bound:
        """The first rows of a query: of one relation, or of an internal view that holds all rows.

        If a view with a LIMIT names a strategy, this strategy maintains the internal view.
        """
        select = bound.selects[0]
        if around is not None and depends(bound):
            rows = as_bag(bound, around, self)
            keys = tuple(one.args[0] for one in rows.conjuncts if isinstance(one, Call))
            order = tuple(Sort(rows.items[p.column].expr, p.descending, p.nulls_last) for p in places)
            found = first_rows(replace(rows, items=rows.items[:columns]), keys, order, clause, self)
            return Bound((found,))
        direct = select.is_plain and not select.absent and len(bound.selects) == len(select.sources) == 1
        if not direct or (self.named and "#" not in select.sources[0].relation):
            select = self.rows_of(bound, node, around)
        if node is self.outermost:
            self.order = ReadOrder(None)
        return limited(select, clause, places, columns)

    def rows_of(self, bound: Bound, node: Node, around: Names | None) -> Select:
        """All rows of a query, as those of an internal view."""
        made = typed(bound, self)
        if around is not None and depends(bound):
            return as_bag(made, around, self)
        return everything(self.source_of(self.internal_view(uniquely_named(made))), bound)

    def position(self, node: exp.Literal, items: tuple[Item, ...], clause: str) -> int:
        """The position, from 0, of the SELECT item that a number in GROUP BY or ORDER BY names."""
        place = int(node.name) if node.name.isdigit() else 0
        if not 1 <= place <= len(items):
            raise self.text.error(node, f"{clause} {node.name}: the SELECT list has only columns 1 to {len(items)}")
        return place - 1

    def _set_operation(self, node: exp.SetOperation, ctes: Mapping[str, Cte], around: Names | None) -> Bound:
        kind = _SET_OPERATIONS[type(node)]
        word = kind.upper()
        for operand in (node.this, node.expression):
            check_operand(self.text, operand, word)
        left, right = (self._operand(one, ctes, around) for one in (node.this, node.expression))
        distinct = bool(node.args.get("distinct"))
        if not distinct and kind != "union":
            kind, word = f"{kind}_all", f"{word} ALL"
        elif not distinct:
            kind = ALL
        if node.args.get("by_name"):
            try:
                left, right = aligned(left, right, self)
            except Fault as fault:
                raise self.text.error(node.expression, str(fault)) from None
        counts = len(left.columns), len(right.columns)
        if counts[0] != counts[1]:
            raise self.text.error(
                node.expression,
                f"{word} takes queries with equally many columns, not {counts[0]} and {counts[1]}",
            )
        try:
            made = set_operation(kind, left, right, self)
        except Fault as fault:
            raise self.text.error(node.expression, str(fault)) from None
        return made

    def _operand(self, node: Node, ctes: Mapping[str, Cte], around: Names | None) -> Bound:
        """Bind an operand of a set operation. An operand with a LIMIT becomes an internal view."""
        bound = self.bind(node, ctes, around)
        return bound if bound.selects[0].limit is None else Bound((self.rows_of(bound, node, around),))

    def relation(
        self, table: exp.Table, ctes: Mapping[str, Cte], around: Names | None = None
    ) -> Select | Source:
        cte = ctes.get(table.name.lower())
        if cte is not None:
            made = self._of_cte(cte)
            if isinstance(made, Select) and cte.around is not around and depends(Bound((made,))):
                # Its marks count the queries between its WITH and the columns that it names.
                what = f"{table.name}, which names columns of a query around its WITH, in a subquery"
                raise self.text.unsupported(table, what, "write WITH inside the subquery")
            return made
        found = self.catalog.named(table.name)
        if found is not None:
            self.relations.setdefault(found.name)
        if isinstance(found, PlainView):
            return self._of_cte(self.plain.setdefault(found.name, query_of(found, self.catalog)))
        if found is None or (not isinstance(found, PlainView) and found.internal and not reads_clock(table)):
            known = (*self.catalog.names, *(one.node.alias for one in ctes.values()))
            raise NameProblem(unknown("table or view", table.name, known), *self.text.at(table))
        return Source(table.name, found.name, found.columns)

    def _of_cte(self, cte: Cte) -> Select | Source:
        cte.is_bound = True
        if cte.view is not None:
            return self.source_of(cte.view)
        binder = self
        if cte.text is not None and cte.catalog is not None:
            binder = replace(self, text=cte.text, catalog=cte.catalog)
        made = binder.subquery(cte.node.this, cte.outer, cte.around)
        names = tuple(c.name for c in cte.node.args["alias"].columns)
        if names and len(names) != len(made.columns):
            raise self.text.error(
                cte.node, f"{cte.node.alias} lists {len(names)} columns, but its query has {len(made.columns)}"
            )
        if isinstance(made, Source):
            view = self.internal[-1]
            if names:
                columns = tuple(replace(c, name=n) for c, n in zip(view.columns, names, strict=True))
                view = self.internal[-1] = renamed_view(view, columns)
            cte.view = view
            self._with_view.append(cte)
            return self.source_of(view)
        if names:
            made = replace(made, items=tuple(replace(i, name=n) for i, n in zip(made.items, names, strict=True)))
        return made

    def subquery(
        self, node: Node, ctes: Mapping[str, Cte], around: Names | None = None, joined: str = ""
    ) -> Select | Source:
        """Bind a query in FROM: a SELECT that only selects, projects and joins dissolves; any other becomes an internal
        view.

        ``around``: the names of enclosing queries that it may use. ``joined``: the kind of LATERAL join (``Subquery``
        in ``blocks.joins.from_clause``).
        """
        bound = self.bind(node, ctes, around)
        dependent = around is not None and depends(bound)
        plain = len(bound.selects) == 1 and bound.selects[0].is_plain and not bound.selects[0].absent
        forced = joined in ("left", "always") and dependent
        if plain and not forced:
            return bound.selects[0]
        whole, bound = bound, typed(bound, self)
        names = [column.name.lower() for column in bound.columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self.text.error(
                node, f"column {twice} is given twice in the subquery; rename one of the columns with AS"
            )
        if around is not None and dependent:
            one_row = joined == "inner" or (joined == "always" and is_one_row(bound))
            found = as_optional_source(bound, around, self) if one_row else None
            if found is not None:
                return found
            return as_bag(bound, around, self, forced)
        source = self.source_of(self.internal_view(bound))
        return source if whole is bound else everything(source, whole)


def _check_select(text: SqlText, node: exp.Select) -> None:
    """Raise SqlError for a SELECT without columns, UnsupportedSql for refused forms of DISTINCT and GROUP BY."""
    if not node.expressions:
        raise text.error(node, "SELECT needs at least one column; write *, or name the columns")
    distinct = node.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        raise text.unsupported(distinct, "DISTINCT ON", "SELECT DISTINCT, or GROUP BY with MIN and MAX, is accepted")
    group = node.args.get("group")
    if group is not None and group.args.get("all") is False:
        raise text.unsupported(group, "GROUP BY DISTINCT", "leave DISTINCT out")
