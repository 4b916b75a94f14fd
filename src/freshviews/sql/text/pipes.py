"""Parses queries with pipe operators, such as ``FROM r |> WHERE a > 1 |> SELECT b``, and bare ``FROM r``, to SELECTs.

A pipe operator adds a clause to the SELECT before it, if the meaning stays the same. Otherwise this SELECT becomes a
subquery in the FROM of a new SELECT. If the FROM of the subquery has only one table, the subquery gets the alias of
this table. So names such as ``r.a`` stay valid, as in Spark.
"""

from __future__ import annotations

from typing import Any

from sqlglot import TokenType, exp

from freshviews.sql.text.pivots import HAS_OTHERS, Pivots, without_pivots

Node = exp.Expr

_OPERATORS = (
    "SELECT, EXTEND, SET, DROP, AS, WHERE, AGGREGATE, JOIN, PIVOT, UNPIVOT, UNION, EXCEPT, INTERSECT, ORDER BY, "
    "LIMIT and OFFSET"
)
_LAST = ("order", "limit", "offset")
POSITION = "\x1dposition"
"""The name of a column that is given by its position among the columns of FROM begins with this. No column's does."""


def is_position(column: exp.Column) -> bool:
    """True if a column is given by its position among those of FROM."""
    return column.name.startswith(POSITION)


def wrong_position(place: int, most: int) -> str:
    """The message of a position that no column of FROM has."""
    return f"GROUP BY {place}: the columns before |> AGGREGATE have the numbers 1 to {most}"


class Pipes(Pivots):
    """The Spark parser with its pipe operator."""

    SUPPORTS_TABLE_QUERY = True

    def _parse_pipe_syntax_query(self, query: Any) -> Any:
        while self._match(TokenType.PIPE_GT):
            if self._curr.token_type in (TokenType.SENTINEL, TokenType.SEMICOLON):
                self.raise_error(f"|> takes {_OPERATORS}", self._prev)
            word = self._curr.text.upper()
            parse = _PARSERS.get(word)
            if parse is not None:
                self._advance()
                query = parse(self, query)
            elif self._curr.token_type in (TokenType.PIVOT, TokenType.UNPIVOT):
                query = self._pivot(query)
            elif self._curr.token_type in self.SET_OPERATIONS:
                # INTERSECT binds before UNION and EXCEPT where they are written without pipes.
                binds = isinstance(query, exp.SetOperation) and self._curr.token_type == TokenType.INTERSECT
                is_whole = binds or any(query.args.get(name) for name in _LAST)
                query = self._parse_set_operations(query.subquery(copy=False) if is_whole else query)
            else:
                query = self._joined(query)
        return query

    def _select(self, query: Node) -> exp.Select:
        select = self._select_over(_open(query, "where"))
        if self._match(TokenType.WINDOW, advance=False):
            select.set("windows", self._parse_window_clause())
        return select

    def _select_over(self, select: exp.Select) -> exp.Select:
        if self._match(TokenType.DISTINCT):
            select.set("distinct", self.expression(exp.Distinct()))
        select.set("expressions", self._list("SELECT"))
        return select

    def _list(self, word: str) -> list[Any]:
        before, made = self._prev, self._parse_expressions()
        if not made:
            self.raise_error(f"something is missing after {word}", before)
        return made

    def _extend(self, query: Node) -> exp.Select:
        select = _open(query, "where")
        select.set("expressions", [exp.Star(), *self._list("EXTEND")])
        return select

    def _set(self, query: Node) -> Node:
        """``|> SET a = a + 1, b = a``: each value may name the columns that are set before it."""
        for made in self._parse_csv(self._parse_update_assignment):
            if not isinstance(made, exp.EQ):
                self.raise_error("SET takes columns and values, as in |> SET a = a + 1", self._prev)
            item = exp.Alias(this=made.expression, alias=made.this.this)
            query = _open(query, "where")
            query.set("expressions", [exp.Star(replace=[item])])
        return query

    def _drop(self, query: Node) -> exp.Select:
        select = _open(query, "where")
        select.set("expressions", [exp.Star(except_=self._parse_csv(lambda: self._value(self._parse_column)))])
        return select

    def _as(self, query: Node) -> exp.Select:
        alias = exp.TableAlias(this=self._value(self._parse_id_var))
        return _over(query, alias)

    def _where(self, query: Node) -> exp.Select:
        select, test = _open(query, "where"), self._value(self._parse_disjunction)
        before = select.args.get("where")
        both = test if before is None else exp.And(this=exp.Paren(this=before.this), expression=exp.Paren(this=test))
        select.set("where", self.expression(exp.Where(this=both)))
        return select

    def _aggregate(self, query: Node) -> exp.Select:
        select = _open(query, "where")
        listed = [] if self._curr.token_type == TokenType.GROUP_BY else self._list("AGGREGATE")
        if not self._match(TokenType.GROUP_BY):
            # HAVING makes it one row, of an expression without an aggregate, too.
            select.set("expressions", listed)
            select.set("having", exp.Having(this=exp.true()))
            return select
        clause, groups = self._prev, [_by_position(group) for group in self._list("GROUP BY")]
        for group in groups:
            what = group.unalias()
            if isinstance(what, (exp.Rollup, exp.Cube, exp.Literal)) or what.name.lower() in ("all", "grouping sets"):
                self.raise_error("GROUP BY of |> AGGREGATE takes columns and expressions", clause)
        select.set("expressions", [*groups, *listed])
        select.set("group", self.expression(exp.Group(expressions=[group.unalias().copy() for group in groups])))
        return select

    def _joined(self, query: Node) -> exp.Select:
        first, select = self._curr, _open(query, "where")
        where, joins = select.args.get("where"), select.args.get("joins") or []
        if where is not None:
            last = joins[-1] if joins else None
            side = last is None or last.side or last.method or last.args.get("using") or last.kind in _FILTERS
            if last is None or side:
                select = _over(select)
            else:
                # The condition of an inner join may stand in its ON, so that all its tables keep their names.
                on = last.args.get("on")
                both = [exp.Paren(this=one) for one in (on, where.this) if one is not None]
                last.set("on", exp.And(this=both[0], expression=both[1]) if len(both) > 1 else both[0])
                last.set("kind", None)
                select.set("where", None)
        join = self._parse_join()
        if join is None or first.token_type == TokenType.COMMA:
            self.raise_error(f"|> takes {_OPERATORS}", first)
        select.append("joins", join)
        return select

    def _pivot(self, query: Node) -> exp.Select:
        item = _item(query)
        item.set("pivots", self._parse_pivots())
        select = exp.Select(expressions=[exp.Star()], from_=exp.From(this=item))
        without_pivots(select)
        return select

    def _order(self, query: Node) -> Node:
        self._retreat(self._index - 1)
        made = _before(query, *_LAST)
        made.set("order", self._parse_order())
        return self._limit(made, False) if self._match(TokenType.LIMIT) else made

    def _limit(self, query: Node, again: bool = True) -> Node:
        self._retreat(self._index - 1)
        made = _before(query, "limit", "offset") if again else query
        made.set("limit", self._parse_limit())
        if self._match(TokenType.OFFSET, advance=False):
            made.set("offset", self._parse_offset())
        return made

    def _offset(self, query: Node) -> Node:
        self._retreat(self._index - 1)
        made = _before(query, "limit", "offset")
        made.set("offset", self._parse_offset())
        return made


_FILTERS = ("SEMI", "ANTI")
_PARSERS = {
    "SELECT": Pipes._select,
    "EXTEND": Pipes._extend,
    "SET": Pipes._set,
    "DROP": Pipes._drop,
    "AS": Pipes._as,
    "WHERE": Pipes._where,
    "AGGREGATE": Pipes._aggregate,
    "ORDER BY": Pipes._order,
    "LIMIT": Pipes._limit,
    "OFFSET": Pipes._offset,
}


def _open(query: Node, *clauses: str) -> exp.Select:
    """A SELECT of all columns that has no clauses but FROM, joins and some others."""
    if isinstance(query, exp.Select) and query.expressions == [exp.Star()]:
        written = {name for name, value in query.args.items() if value}
        if written <= {"expressions", "from_", "joins", *clauses}:
            return query
    return _over(query)


def _over(query: Node, alias: exp.TableAlias | None = None) -> exp.Select:
    """A SELECT of all columns from a query."""
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=_item(query, alias)))


def _item(query: Node, alias: exp.TableAlias | None = None) -> Node:
    """A query as an item of FROM."""
    if isinstance(query, exp.Subquery) and alias is None:
        return query
    made = exp.Subquery(this=query, alias=alias)
    first = query.args.get("from_") if isinstance(query, exp.Select) else None
    if alias is None and first is not None and not query.args.get("joins") and not first.this.args.get("joins"):
        name = first.this.alias_or_name
        if name:
            made.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
            own = not first.this.meta.get(HAS_OTHERS) and all(map(_is_of_table, query.expressions))
            made.meta[HAS_OTHERS] = not own
    return made


def _by_position(group: Node) -> Node:
    """A group of ``|> AGGREGATE``: a number without an alias is a column of FROM."""
    if not isinstance(group, exp.Literal) or not group.is_int:
        return group
    column = exp.Column(this=exp.to_identifier(f"{POSITION}{group.this}", quoted=True))
    column.meta.update(group.meta)
    return column


def _is_of_table(item: Node) -> bool:
    """True for an item of a list that is a column with its name, or all of them."""
    if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
        return True
    star = item.this if isinstance(item, exp.Column) else item
    return isinstance(star, exp.Star) and not star.args.get("replace")


def _before(query: Node, *clauses: str) -> Node:
    """A query without these clauses."""
    if isinstance(query, (exp.Select, exp.SetOperation)) and not any(query.args.get(name) for name in clauses):
        return query
    return _over(query)
