"""FROM to a join of sources and a scope of columns.

Accepts inner, cross and comma joins, with ON, USING or NATURAL. A subquery that only selects, projects and joins
dissolves into the enclosing join; any other becomes an internal view.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from freshviews.catalog.catalog import near, same
from freshviews.expr.nodes import Expr
from freshviews.sql.blocks.bound import Absent, Select
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Fault, renamed
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.names.scope import Entry, Scope, Source, alias_of, name_of, table_scope
from freshviews.sql.text.parse import Node, SqlText
from freshviews.sql.text.refuse import check_table


@dataclass(frozen=True)
class Joined:
    """A join under construction: its sources, predicates, scope, and the sources that NOT EXISTS names."""

    sources: tuple[Source, ...] = ()
    conjuncts: tuple[Expr, ...] = ()
    scope: Scope = field(default_factory=Scope)
    absent: tuple[Absent, ...] = ()


Relation = Callable[[exp.Table], "Select | Source"]
"""Resolves a table name in FROM: a relation, or a CTE bound as a bag."""

Subquery = Callable[[Node], "Select | Source"]
"""Binds a subquery in FROM: a bag to dissolve, or the internal view made for it."""


@dataclass(frozen=True)
class FromBinder:
    """Binds one FROM clause."""

    text: SqlText
    relation: Relation
    subquery: Subquery

    def bind(self, select: exp.Select) -> Joined:
        """The join of a SELECT. Raises SqlError where it has no FROM."""
        first = select.args.get("from_")
        if first is None:
            raise self.text.unsupported(select, "SELECT without FROM", "a view reads at least one table or view")
        taken = _written_aliases(select)
        joined = self._item(first.this, Joined(), taken)
        for join in (*(first.this.args.get("joins") or ()), *(select.args.get("joins") or ())):
            joined = self._join(joined, join, taken)
        return joined

    def _join(self, left: Joined, join: exp.Join, taken: list[str]) -> Joined:
        self._refuse_outer(join)
        right = self._item(join.this, left, taken)
        both = Joined((*left.sources, *right.sources), (*left.conjuncts, *right.conjuncts))
        for nested in join.this.args.get("joins") or ():
            raise self.text.unsupported(nested, "a join nested in a join", "write the joins one after the other")
        names = [column.name for column in join.args.get("using") or ()]
        if (join.method or "").upper() == "NATURAL":
            names = [e.name for e in left.scope.visible if any(same(e.name, r.name) for r in right.scope.visible)]
        if names or (join.method or "").upper() == "NATURAL":
            equal = tuple(self._shared(join, name, left.scope, right.scope) for name in dict.fromkeys(names))
            scope = left.scope.merging(right.scope, dict.fromkeys(names))
            return replace(both, conjuncts=(*both.conjuncts, *equal), scope=scope)
        scope = left.scope.beside(right.scope)
        on = join.args.get("on")
        if on is None:
            return replace(both, scope=scope)
        condition = Binder(self.text, lambda c: scope.resolve(self.text, c), "ON").condition(on)
        return replace(both, conjuncts=(*both.conjuncts, *logic.conjuncts_of(condition)), scope=scope)

    def _shared(self, join: exp.Join, name: str, left: Scope, right: Scope) -> Expr:
        sides = []
        for scope, side in ((left, "left"), (right, "right")):
            found = [entry for entry in scope.visible if same(entry.name, name)]
            if len(found) != 1:
                known = "" if found else near(name, (e.name for e in scope.visible))
                how_many = "two columns" if found else "no column"
                raise self.text.error(join, f"the {side} side of the join has {how_many} {name}{known}")
            sides.append(found[0].expr)
        try:
            return logic.compare("=", sides[0], sides[1])
        except Fault as fault:
            raise self.text.error(join, f"{name}: {fault}") from None

    def _refuse_outer(self, join: exp.Join) -> None:
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        instead = "INNER, CROSS, NATURAL and comma joins are accepted"
        if kind in ("SEMI", "ANTI"):
            raise self.text.unsupported(join, f"{kind} JOIN", instead + "; a SEMI JOIN is a join with SELECT DISTINCT")
        if side in ("LEFT", "RIGHT", "FULL") or kind == "OUTER":
            raise self.text.unsupported(join, f"{side or 'FULL'} OUTER JOIN", instead)
        if kind not in ("", "INNER", "CROSS") or (join.method or "").upper() not in ("", "NATURAL"):
            raise self.text.unsupported(join, f"{join.method} {kind} JOIN".strip(), instead)

    def _item(self, node: Node, before: Joined, taken: list[str]) -> Joined:
        if node.args.get("sample") is not None:
            raise self.text.unsupported(node, "TABLESAMPLE", "name the whole table")
        if node.args.get("pivots"):
            raise self.text.unsupported(node, "PIVOT", "SUM(CASE WHEN ... THEN ... END) per column is accepted")
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            if node.args.get("db") is not None:
                raise self.text.error(node, f"{self.text.of(node)}: tables have one name, without a schema")
            check_table(self.text, node)
            return self._named(node, self.relation(node), node.alias or node.name, before, taken)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            raise self.text.unsupported(node, "a join in parentheses", "write the joins one after the other")
        if isinstance(node, exp.Subquery):
            return self._named(node, self.subquery(node), node.alias, before, taken)
        names: dict[type[Node], str] = {exp.Values: "VALUES in FROM", exp.Lateral: "LATERAL"}
        what = names.get(type(node), f"{self.text.of(node)} in FROM")
        raise self.text.unsupported(node, what, "FROM takes tables, views and subqueries")

    def _named(self, node: Node, bound: Select | Source, alias: str, before: Joined, taken: list[str]) -> Joined:
        if alias and any(same(alias, entry.alias) for entry in before.scope.entries):
            raise self.text.error(node, f"{alias} stands twice in FROM; give one of them another alias with AS")
        names = self._column_names(node, bound)
        if isinstance(bound, Source):
            own = alias or _free("q", taken)
            return Joined((replace(bound, alias=own),), (), table_scope(replace(bound, alias=own), names))
        return _dissolved(bound, alias, names, taken)

    def _column_names(self, node: Node, bound: Select | Source) -> tuple[str, ...]:
        own = tuple(column.name for column in bound.columns)
        alias = node.args.get("alias")
        listed = tuple(column.name for column in alias.columns) if alias is not None else ()
        if alias is not None and listed and len(listed) != len(own):
            raise self.text.error(
                alias, f"{alias.name} lists {len(listed)} columns; there are {len(own)}: {', '.join(own)}"
            )
        return listed or own


def _dissolved(inner: Select, alias: str, names: tuple[str, ...], taken: list[str]) -> Joined:
    """Dissolve a subquery: its sources get aliases that are free here, its items become columns of ``alias``."""
    fresh: dict[str, str] = {}
    for source in inner.sources:
        wanted = source.alias
        if alias:
            wanted = alias if len(inner.sources) == 1 else f"{alias}_{source.alias}"
        single = len(inner.sources) == 1 and alias
        fresh[source.alias] = wanted if single else _free(wanted, taken)

    def moved(expr: Expr) -> Expr:
        sources = {old: replace(s, alias=fresh[old]) for old, s in by_alias.items()}

        def to(column: str) -> str:
            source = sources[alias_of(column)]
            definition = next(c for c in source.columns if c.name == name_of(column))
            return source.column(definition).name

        return renamed(expr, to)

    by_alias = {source.alias: source for source in inner.sources}
    entries = tuple(Entry(alias, name, moved(item.expr)) for name, item in zip(names, inner.items, strict=True))
    sources = tuple(replace(source, alias=fresh[source.alias]) for source in inner.sources)
    return Joined(sources, tuple(moved(c) for c in inner.conjuncts), Scope(entries, entries))


def _written_aliases(select: exp.Select) -> list[str]:
    """The aliases that the user wrote in this FROM; generated aliases avoid them."""
    items = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
    return [item.alias or item.name for item in items if item.alias or isinstance(item, exp.Table)]


def _free(wanted: str, taken: list[str]) -> str:
    name, number = wanted, 2
    while any(same(name, one) for one in taken):
        name, number = f"{wanted}_{number}", number + 1
    taken.append(name)
    return name
