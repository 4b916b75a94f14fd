"""Binds FROM to a join of sources and a scope. The scope has the columns that the query may name.

A subquery that only selects, projects and joins is merged into the enclosing join. Any other subquery becomes an
internal view.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace

from sqlglot import exp

from freshviews.catalog.catalog import near, same
from freshviews.expr.nodes import Call, Column, Expr, columns_of
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import Select
from freshviews.sql.blocks.enclosing import Names
from freshviews.sql.blocks.joins.dependent import as_source, tied_by_on, values_of
from freshviews.sql.blocks.joins.lowering import Read, anti_join, semi_join
from freshviews.sql.blocks.joins.tree import FullJoin, Joined, LeftJoin, either_of, free_alias, is_plain, loosened
from freshviews.sql.blocks.optional import equality
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Fault, Refusal, nodes_of, renamed, replaced
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.names.marks import OUTER, unmarked
from freshviews.sql.names.scope import Entry, Scope, Source, alias_of, aliases_in, name_of, table_scope
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.pipes import is_position
from freshviews.sql.text.terms import has_subquery, terms_of

Relation = Callable[[exp.Table, Names | None], "Select | Source"]
"""Resolves a table name in FROM to a relation, or to a CTE bound as a bag, given the names of enclosing queries."""

Subquery = Callable[[Node, Names | None, str], "Select | Source"]
"""Binds a subquery in FROM, given the names of enclosing queries: to a bag to dissolve, or to its internal view. The
last argument is the kind of LATERAL join: ``inner``; ``left``, for which a bag that uses these names is an internal
view, too; ``always``, a LEFT JOIN without a condition in ON; empty without LATERAL."""

Nearest = Callable[[exp.Join, Joined, Joined, tuple[Expr, ...], list[str]], tuple[Joined, tuple[Expr, ...]]]
"""The right side of an ASOF JOIN, and the predicates that join it, given its left side and its ON; the last argument is
``_taken``. Raises Refusal."""

Where = Callable[[Joined, Sequence[Node]], Joined]
Value = Callable[[Joined, Node], tuple[Joined, Expr]]

_KINDS = {"": "inner", "INNER": "inner", "CROSS": "inner", "OUTER": "full", "SEMI": "semi", "ANTI": "anti"}


@dataclass(frozen=True)
class FromBinder:
    """Binds one FROM clause.

    ``read``: the columns that the SELECT mentions.
    """

    text: SqlText
    relation: Relation
    subquery: Subquery
    views: Views
    read: Read
    where: Where
    """Adds terms of WHERE to a join."""
    value: Value
    """The value of a predicate with subqueries for each row of a join, and the join that provides it."""
    nearest: Nearest
    around: Names | None = None
    """The names of the enclosing queries."""
    asked: list[Node] = field(default_factory=list)
    """Terms of ON with subqueries, of inner joins, which are equivalent to terms of WHERE."""
    _inner: list[exp.Join] = field(default_factory=list)
    """The inner joins whose ON is equivalent to WHERE: no outer join makes NULLs of their rows."""
    _taken: list[str] = field(default_factory=list)
    """Aliases that the user wrote, and generated ones; a generated alias avoids them."""
    _used: list[str] = field(default_factory=list)
    """The aliases of the sources so far."""

    def bind(self, select: exp.Select) -> Joined:
        """The join of a SELECT; without FROM, one row without columns."""
        first = select.args.get("from_")
        if first is None:
            return Joined((self.views.one_row(),), scope=self._within(Scope()))
        joins = select.args.get("joins") or ()
        if not any(_kind(join) in ("right", "full") for join in joins):
            self._inner.extend(join for join in joins if _kind(join) == "inner" and not _is_asof(join))
        self._taken.extend(_written_aliases([first.this, *(join.this for join in joins)]))
        joined = self._item(first.this)
        for group in self._comma_groups(joins):
            if len(group) == 1:
                joined = self._join(joined, group[0])
                continue
            right = self._item(group[0].this)
            for join in group[1:]:
                right = self._join(right, join)
            joined = joined.beside(right, joined.scope.beside(right.scope))
        return replace(joined, scope=self._within(joined.scope))

    def _within(self, scope: Scope) -> Scope:
        """The scope with the names of the enclosing queries."""
        return replace(scope, outer=self.around)

    def _comma_groups(self, joins: Sequence[exp.Join]) -> list[list[exp.Join]]:
        """The joins one by one; but a comma and the joins up to the next comma together, if one of them is a RIGHT or
        FULL JOIN, which does not include the items before the comma."""
        groups: list[list[exp.Join]] = []
        for join in joins:
            if self.text.follows(join.this, ",") or not groups:
                groups.append([join])
            else:
                groups[-1].append(join)
        made = []
        for group in groups:
            bound = any(_kind(join) in ("right", "full") for join in group[1:])
            made += [group] if bound and self.text.follows(group[0].this, ",") else [[join] for join in group]
        return made

    def _join(self, left: Joined, join: exp.Join) -> Joined:
        kind = self._checked_kind(join)
        right = self._lateral(left, join, kind) if isinstance(join.this, exp.Lateral) else self._item(join.this)
        if not (right.sources or right.full):
            # An aggregate in LATERAL always has a row.
            kind = "inner"
        twice = next((t for t in right.scope.tables if any(same(t, own) for own in left.scope.tables)), None)
        if twice is not None:
            raise self.text.error(join.this, f"{twice} is given twice in FROM; write another alias with AS")
        if kind in ("right", "full"):
            left = self._side(left)
        if kind in ("left", "full"):
            right = self._side(right)
        if _is_asof(join):
            return self._nearest(left, right, join, kind)
        asked = self._deciding_terms(join)
        tie: tuple[Expr, ...] = ()
        if asked and kind == "full":
            left, right, tie = self._sides_with_values(left, right, asked)
        on, shared = self._condition(join, left.scope, right.scope)
        if asked and kind != "full":
            row, optional = (right, left) if kind == "right" else (left, right)
            optional, tie = self._side_with_terms(row, optional, asked)
            left, right = (optional, row) if kind == "right" else (row, optional)
        on = (*on, *tie)
        if isinstance(join.this, exp.Lateral) and kind == "left":
            # The predicates that tie LATERAL to the preceding row are part of ON.
            own = tuple(one for one in right.conjuncts if aliases_in(one) <= right.aliases)
            on = (*on, *(one for one in right.conjuncts if one not in own))
            right = replace(right, conjuncts=own)
        sides = (
            loosened(left.scope) if kind in ("right", "full") else left.scope,
            loosened(right.scope) if kind in ("left", "full") else right.scope,
        )
        scope = self._scope(kind, shared, *sides)
        match kind:
            case "left":
                return replace(left, left=(*left.left, LeftJoin(right, on)), scope=scope)
            case "right":
                return replace(right, left=(*right.left, LeftJoin(left, on)), scope=scope)
            case "full":
                merged = either_of(entry.expr for entry in scope.visible[: len(shared)])
                return Joined(full=(FullJoin(left, right, on, merged),), scope=scope)
            case "semi" | "anti":
                if self.around is not None:
                    left, right, on = tied_by_on(left, right, on, self.around, self.views)
                made = (semi_join if kind == "semi" else anti_join)(left, right, on, self.views, self._taken)
                return replace(made, scope=scope)
            case _:
                return left.beside(right, scope, on)

    def _nearest(self, left: Joined, right: Joined, join: exp.Join, kind: str) -> Joined:
        """ASOF JOIN: each row beside the nearest one of the right side."""
        try:
            right = _one_source(right, self.around, self.views, self._taken)
        except Refusal as refusal:
            raise self.text.unsupported(join.this, refusal.what, refusal.instead) from None
        on, shared = self._condition(join, left.scope, right.scope)
        match = join.args.get("match_condition")
        if match is not None:
            scope = left.scope.beside(right.scope)
            on = (*on, Binder(self.text, lambda c: scope.resolve(self.text, c), "MATCH_CONDITION").condition(match))
        elif shared and isinstance(on[-1], Call):
            # As in DuckDB, the last column of USING is the order.
            on = (*on[:-1], replace(on[-1], op="ge"))
        try:
            made, on = self.nearest(join, left, right, on, self._taken)
        except Refusal as refusal:
            raise self.text.unsupported(join.this, refusal.what, refusal.instead) from None
        if kind == "inner":
            return left.beside(made, self._scope(kind, shared, left.scope, made.scope), on)
        scope = self._scope(kind, shared, left.scope, loosened(made.scope))
        return replace(left, left=(*left.left, LeftJoin(made, on)), scope=scope)

    def _side(self, joined: Joined) -> Joined:
        """A side of an outer join that may have no partner; an internal view if it computes values from NULLs."""
        if is_plain(joined.scope):
            return joined
        return as_source(joined, self.around, self.views, self.read, self._taken)

    def _condition(self, join: exp.Join, left: Scope, right: Scope) -> tuple[tuple[Expr, ...], tuple[str, ...]]:
        """The predicates of ON, USING or NATURAL, and the names of the columns of USING or NATURAL."""
        names = [column.name for column in join.args.get("using") or ()]
        if (join.method or "").upper() == "NATURAL":
            names = [e.name for e in left.visible if right.named(e.name)]
        if names:
            shared = tuple(dict.fromkeys(names))
            return tuple(self._shared(join, name, left, right) for name in shared), shared
        on = join.args.get("on")
        if on is None:
            return (), ()
        scope = self._within(left.beside(right))
        binder = Binder(self.text, lambda c: scope.resolve(self.text, c), "ON")
        if not has_subquery(on):
            return logic.conjuncts_of(binder.condition(on)), ()
        asked = [term for term in terms_of(on) if has_subquery(term)]
        if any(join is one for one in self._inner):
            self.asked.extend(asked)
        others = [term for term in terms_of(on) if not any(term is one for one in asked)]
        return tuple(c for term in others for c in logic.conjuncts_of(binder.condition(term))), ()

    def _deciding_terms(self, join: exp.Join) -> list[Node]:
        """The terms of ON with subqueries that decide the partners in an outer, semi or anti join."""
        on = join.args.get("on")
        if on is None or any(join is one for one in self._inner):
            return []
        return [term for term in terms_of(on) if has_subquery(term)]

    def _side_with_terms(self, row: Joined, optional: Joined, asked: Sequence[Node]) -> tuple[Joined, tuple[Expr, ...]]:
        """The side of an outer join whose rows pass the terms, and the predicates of ON that tie it to the other side.

        If the terms name columns of the other side, their distinct values are joined to this side.
        """
        named = [column for term in asked for column in term.find_all(exp.Column)]
        entries = [e for c in named if not optional.scope.has(c) for e in row.scope.named(c.name, c.table)]
        columns = list(dict.fromkeys(name for entry in entries for name in columns_of(entry.expr)))
        nodes = {n.name: n for entry in entries for n in nodes_of(entry.expr) if isinstance(n, Column)}
        if not columns:
            within = replace(optional, scope=self._within(optional.scope))
            return replace(self.where(within, asked), scope=optional.scope), ()
        own = tuple(nodes[name] for name in columns)
        source = self.views.shared_source(values_of(row, own, self.around, self.views))
        source = replace(source, alias=free_alias("keys", self._taken))
        keys = [source.column(column) for column in source.columns]
        to = dict(zip(columns, keys, strict=True))
        scope = row.scope.mapped(lambda e: replaced(e, lambda p: to.get(p.name) if isinstance(p, Column) else None))
        beside = optional.beside(Joined((source,)), self._within(scope.beside(optional.scope)))
        made = replace(self.where(beside, asked), scope=optional.scope)
        return made, tuple(equality(key, column) for key, column in zip(keys, own, strict=True))

    def _sides_with_values(
        self, left: Joined, right: Joined, asked: Sequence[Node]
    ) -> tuple[Joined, Joined, tuple[Expr, ...]]:
        """The sides of a FULL JOIN with the values of terms of its ON, each computed by the side that it names."""
        found: list[Expr] = []
        for term in asked:
            names = _names_of_join(term) or list(term.find_all(exp.Column))
            by_left, by_right = (any(side.scope.named(c.name, c.table) for c in names) for side in (left, right))
            if by_left and by_right:
                what = "a subquery in ON of a FULL JOIN, in a predicate that names columns of both sides,"
                raise self.text.unsupported(term, what, "join a subquery that computes the value instead of its table")
            side, value = self._view_with_value(right if by_right else left, term)
            left, right = (left, side) if by_right else (side, right)
            found.append(value)
        return left, right, tuple(found)

    def _view_with_value(self, side: Joined, term: Node) -> tuple[Joined, Expr]:
        """A side of an outer join as an internal view with the value of a predicate as a further column."""
        scope = side.scope
        made, value = self.value(replace(side, scope=self._within(scope)), term)
        name = free_alias("matches", [entry.name for entry in (*scope.entries, *scope.visible)])
        read = None if self.read is None else {*self.read, ("", name)}
        whole = replace(made, scope=replace(scope, entries=(*scope.entries, Entry("", name, value))))
        stored = as_source(whole, self.around, self.views, read, self._taken)
        *entries, last = stored.scope.entries
        return replace(stored, scope=replace(stored.scope, entries=tuple(entries))), last.expr

    def _shared(self, join: exp.Join, name: str, left: Scope, right: Scope) -> Expr:
        sides = []
        for scope, side in ((left, "left"), (right, "right")):
            found = scope.named(name)
            if len(found) != 1:
                known = "" if found else near(name, (e.name for e in scope.visible))
                how_many = "two columns" if found else "no column"
                raise self.text.error(join, f"the {side} side of the join has {how_many} {name}{known}")
            sides.append(found[0].expr)
        try:
            return logic.compare("=", sides[0], sides[1])
        except Fault as fault:
            raise self.text.error(join, f"{name}: {fault}") from None

    def _scope(self, kind: str, names: Sequence[str], left: Scope, right: Scope) -> Scope:
        """The columns of a join; those of USING and NATURAL are first, once, with the value of the present side.
        """

        def entry(scope: Scope, name: str) -> Entry:
            return next(e for e in scope.visible if same(e.name, name))

        def merged(name: str) -> Entry:
            if kind == "full":
                either = logic.first_of((entry(left, name).expr, entry(right, name).expr))
                return Entry("", entry(left, name).name, either)
            return entry(right if kind == "right" else left, name)

        if kind in ("semi", "anti"):
            return left.merging(Scope(), map(merged, names))
        return left.merging(right, map(merged, names)) if names else left.beside(right)

    def _checked_kind(self, join: exp.Join) -> str:
        side, kind, method = (str(word or "").upper() for word in (join.side, join.kind, join.method))
        found = _kind(join)
        known = found is not None and (method in ("", "NATURAL") or (method == "ASOF" and found in ("inner", "left")))
        known = known and not (kind in ("CROSS", "INNER") and side) and not (kind == "OUTER" and not side)
        if not known or found is None or (kind in ("SEMI", "ANTI") and side not in ("", "LEFT")):
            instead = "INNER, CROSS, LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI, NATURAL and comma joins are accepted"
            raise self.text.unsupported(join, " ".join(filter(None, (method, side, kind, "JOIN"))), instead)
        if method != "ASOF":
            return found
        if join.args.get("on") is not None and has_subquery(join.args["on"]):
            raise self.text.unsupported(join, "a subquery in ON of an ASOF JOIN", "join by columns")
        # In Snowflake, which has MATCH_CONDITION, rows without a match stay.
        return "left" if join.args.get("match_condition") is not None else found

    def _item(self, node: Node) -> Joined:
        """An item of FROM with the joins nested in it."""
        joined = self._alone(node)
        for join in node.args.get("joins") or ():
            joined = self._join(joined, join)
        return joined

    def _alone(self, node: Node) -> Joined:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            if node.args.get("db") is not None:
                what = f"{self.text.of(node)}: write {node.name}; all tables are in the schema default"
                raise self.text.error(node, what)
            return self._named(node, self.relation(node, self.around), node.alias or node.name)
        if isinstance(node, exp.Subquery) and _is_nest(node.this):
            return self._renamed(node, self._item(node.this))
        if isinstance(node, (exp.Subquery, exp.Values)):
            query = node
            if node.args.get("joins"):
                query = node.copy()
                query.set("joins", None)
            return self._named(node, self.subquery(query, self.around, ""), node.alias)
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            return self._named(node, self.subquery(node.this, self.around, ""), node.alias)
        raise self.text.unsupported(node, f"{self.text.of(node)} in FROM", "FROM takes tables, views and subqueries")

    def _lateral(self, left: Joined, join: exp.Join, kind: str) -> Joined:
        """A subquery that may name columns of the preceding items of FROM."""
        node = join.this
        if kind not in ("inner", "left"):
            raise self.text.unsupported(
                join, f"{kind.upper()} JOIN LATERAL", "comma, INNER, CROSS and LEFT JOIN LATERAL are accepted"
            )
        if not isinstance(node.this, exp.Subquery):
            raise self.text.unsupported(node, f"LATERAL {self.text.of(node.this)}", "LATERAL (SELECT ...) is accepted")
        scope = self._within(left.scope)
        names = Names(self.text, scope, lambda columns: values_of(left, columns, self.around, self.views))
        on = join.args.get("on")
        always = kind == "left" and not join.args.get("using") and (on is None or _is_true(on))
        made = self._named(node, self.subquery(node.this, names, "always" if always else kind), node.alias)
        return made.mapped(unmarked)

    def _renamed(self, node: Node, nest: Joined) -> Joined:
        """A join in parentheses; if it has an alias, its columns have only this alias."""
        if not node.alias:
            return nest
        visible = nest.scope.visible
        names = self._column_names(node, tuple(entry.name for entry in visible))
        entries = tuple(Entry(node.alias, name, entry.expr) for name, entry in zip(names, visible, strict=True))
        return replace(nest, scope=Scope(entries, entries))

    def _named(self, node: Node, bound: Select | Source, alias: str) -> Joined:
        names = self._column_names(node, tuple(column.name for column in bound.columns))
        if isinstance(bound, Source):
            source = replace(bound, alias=self._alias(alias or "q", bool(alias)))
            entries = table_scope(source, names).entries
            entries = tuple(replace(entry, alias=alias or source.alias) for entry in entries)
            return Joined((source,), scope=Scope(entries, entries))
        return self._dissolved(bound, alias, names)

    def _alias(self, wanted: str, written: bool) -> str:
        """An alias for a source: the written one, unless a source in parentheses has it."""
        free = written and not any(same(wanted, one) for one in self._used)
        made = wanted if free else free_alias(wanted, self._taken)
        self._used.append(made)
        return made

    def _column_names(self, node: Node, own: tuple[str, ...]) -> tuple[str, ...]:
        alias = node.args.get("alias")
        listed = tuple(column.name for column in alias.columns) if alias is not None else ()
        if alias is not None and listed and len(listed) != len(own):
            raise self.text.error(
                alias,
                f"alias {alias.name} lists {len(listed)} columns, but the source has {len(own)}: {', '.join(own)}",
            )
        return listed or own

    def _dissolved(self, inner: Select, alias: str, names: tuple[str, ...]) -> Joined:
        """Dissolve a subquery: its sources get unused aliases, its items become columns of ``alias``."""
        single = len(inner.sources) == 1 and bool(alias)
        fresh: dict[str, str] = {}
        for source in inner.sources:
            wanted = alias if single else f"{alias}_{source.alias}" if alias else source.alias
            fresh[source.alias] = self._alias(wanted, single)
        sources = {source.alias: replace(source, alias=fresh[source.alias]) for source in inner.sources}

        def to(column: str) -> str:
            if column.startswith(OUTER):
                return column
            source = sources[alias_of(column)]
            return source.column(next(c for c in source.columns if c.name == name_of(column))).name

        def moved(exprs: Sequence[Expr]) -> tuple[Expr, ...]:
            return tuple(renamed(expr, to) for expr in exprs)

        items = zip(names, moved([item.expr for item in inner.items]), strict=True)
        entries = tuple(Entry(alias, name, expr) for name, expr in items)
        left = tuple(LeftJoin(Joined((sources[one.alias],)), moved(one.on)) for one in inner.optional)
        optional = {one.alias for one in inner.optional}
        required = tuple(source for old, source in sources.items() if old not in optional)
        return Joined(required, moved(inner.conjuncts), Scope(entries, entries), left=left)


def _kind(join: exp.Join) -> str | None:
    """One of inner, left, right, full, semi and anti; None for another join."""
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    found = _KINDS.get(kind)
    return side.lower() if found in ("inner", "full") and side in ("LEFT", "RIGHT", "FULL") else found


def _one_source(right: Joined, around: Names | None, views: Views, taken: list[str]) -> Joined:
    """The right side as one source. Raises Refusal if it depends on enclosing queries."""
    plain = len(right.sources) == 1 and not (right.conjuncts or right.left or right.full or right.absent)
    if not plain or not all(isinstance(entry.expr, Column) for entry in right.scope.entries):
        right = as_source(right, around, views, None, taken)
    if right.conjuncts or len(right.sources) != 1:
        raise Refusal(
            "an ASOF JOIN with a side that names columns of an enclosing query", "write the join in a WITH query"
        )
    return right


def _is_asof(join: exp.Join) -> bool:
    return (join.method or "").upper() == "ASOF"


def _names_of_join(term: Node) -> list[exp.Column]:
    """The columns in a predicate that belong to none of its subqueries, judging by names alone."""
    found = []
    for column in term.find_all(exp.Column):
        inside: list[exp.Select] = []
        around = column.find_ancestor(exp.Select)
        while around is not None and _is_within(around, term):
            inside.append(around)
            around = around.find_ancestor(exp.Select)
        aliases = [alias for one in inside for alias in _aliases_of(one)]
        if not inside or (column.table and not any(same(column.table, alias) for alias in aliases)):
            found.append(column)
    return found


def _is_within(node: Node, whole: Node) -> bool:
    above: Node | None = node
    while above is not None and above is not whole:
        above = above.parent
    return above is whole


def _aliases_of(select: exp.Select) -> list[str]:
    """The aliases in the FROM of a SELECT."""
    first, joins = select.args.get("from_"), select.args.get("joins") or ()
    return _written_aliases([*([] if first is None else [first.this]), *(join.this for join in joins)])


def _is_true(on: Node) -> bool:
    return isinstance(on.unnest(), exp.Boolean) and bool(on.unnest().this)


def _is_nest(node: Node) -> bool:
    """True for a join or a table in parentheses; False for a query."""
    if isinstance(node, exp.Subquery):
        return bool(node.alias or node.args.get("joins")) or _is_nest(node.this)
    return isinstance(node, exp.Table)


def _written_aliases(items: Sequence[Node]) -> list[str]:
    """The aliases that the user wrote in this FROM; generated aliases avoid them."""
    found: list[str] = []
    for item in items:
        if item.alias or isinstance(item, exp.Table):
            found.append(item.alias or item.name)
        nested = [item.this] if isinstance(item, exp.Subquery) and _is_nest(item.this) else []
        found += _written_aliases([*nested, *(join.this for join in item.args.get("joins") or ())])
    return found


def columns_read(select: exp.Select, from_too: bool, but: Node | None = None) -> Read:
    """The columns that a SELECT mentions, in FROM or only in its other clauses, except in the part ``but``.

    ``*`` of a subquery, as in EXISTS (SELECT * ...), denotes columns of the subquery's own FROM.
    """
    clauses = [value for name, value in select.args.items() if from_too or name not in ("from_", "joins", "with_")]
    parts = [part for one in clauses for part in (one if isinstance(one, list) else [one]) if isinstance(part, Node)]
    stars = [star for part in parts for star in part.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    if any(isinstance(star.parent, exp.Column) or star.parent_select is select for star in stars):
        return None
    if any(is_position(column) for part in parts for column in part.find_all(exp.Column)):
        return None
    joins = [join for part in parts for join in part.find_all(exp.Join)]
    if any((join.method or "").upper() == "NATURAL" for join in joins):
        return None
    using = {("", name.name.lower()) for join in joins for name in join.args.get("using") or ()}
    left_out = set() if but is None else {id(column) for column in but.find_all(exp.Column)}
    columns = (column for part in parts for column in part.find_all(exp.Column))
    return using | {(one.table.lower(), one.name.lower()) for one in columns if id(one) not in left_out}
