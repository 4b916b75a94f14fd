"""Parses PIVOT and UNPIVOT, and rewrites them as SELECTs.

PIVOT groups by the columns that it does not name. The first line becomes the second::

    r PIVOT (SUM(b) FOR c IN ('x', 'y'))
    (SELECT * EXCEPT (b, c), SUM(b) FILTER (WHERE c <=> 'x') AS x, ... FROM r GROUP BY ALL)

``r UNPIVOT (v FOR n IN (a, b))`` makes up to two rows of a row of r: n = 'a' with the value of a as v, and n = 'b' with
that of b. As in Spark, PIVOT and UNPIVOT apply to all of FROM before them. If FROM has only one table, the columns
keep its alias.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

from sqlglot import TokenType, exp

from freshviews.expr import casts
from freshviews.sql.text.data import DataStatements
from freshviews.sql.text.operators import SPAN
from freshviews.sql.text.refuse import is_aggregate_name

Node = exp.Expr

HAS_OTHERS = "freshviews_has_others"
"""Marks a subquery that has the alias of a table by itself, and columns that are not the table's."""
_PLACE = "\x1dplace"
_NAME = "\x1dname"
_NULL_OVER_NONE = ("sum", "avg", "mean", "min", "max", "any_value", "first", "last", "stddev", "variance")
"""Aggregates that are NULL over no rows, as each column of PIVOT is."""
MOST_PARTS = 100_000
"""Most parts of the columns that a PIVOT makes: names, constants, operations. A part takes about 1 KB until the view is
planned."""
_AN_ALIAS = "a name is missing, as in FOR c IN (abs(-2) AS two); only a constant has a name of its own"


class Pivots(DataStatements):
    """The Spark parser with PIVOT and UNPIVOT, which become SELECTs with the FROM that they belong to."""

    def _parse_pivot(self) -> Any:
        follows = self._next.text.upper() if self._next else ""
        clause = follows == "(" or (self._curr.token_type == TokenType.UNPIVOT and follows in ("INCLUDE", "EXCLUDE"))
        if not clause or not self._match_set((TokenType.PIVOT, TokenType.UNPIVOT)):
            return None  # Else an alias, which may be any word in Spark.
        first = self._prev
        is_unpivot = first.token_type == TokenType.UNPIVOT
        with_nulls = False
        if is_unpivot and self._match_texts(("INCLUDE", "EXCLUDE")):
            with_nulls = self._prev.text.upper() == "INCLUDE"
            self._match_text_seq("NULLS")
        example = "UNPIVOT (value FOR name IN (a, b))" if is_unpivot else "PIVOT (SUM(b) FOR c IN ('x', 'y'))"
        self._needs(TokenType.L_PAREN, "(", example)
        made = self._columns() if is_unpivot else self._parse_csv(self._pivot_aggregate)
        self._needs(TokenType.FOR, "FOR", example)
        names = self._columns()
        self._needs(TokenType.IN, "IN", example)
        self._needs(TokenType.L_PAREN, "(", example)
        values = self._parse_csv(self._unpivot_column if is_unpivot else self._pivot_value)
        self._needs(TokenType.R_PAREN, ")", example)
        self._needs(TokenType.R_PAREN, ")", example)
        if not made or not values:
            self.raise_error(f"something is missing, as in {example}", first)
        alias = None
        if self._curr.token_type not in (TokenType.PIVOT, TokenType.UNPIVOT):
            alias = self._parse_table_alias()
        for value in values if is_unpivot else ():
            if len(_listed(value.this)) != len(made):
                self.raise_error(f"UNPIVOT has {len(made)} columns of values; each item of IN needs as many", first)
        for value in () if is_unpivot else values:
            if len(_listed(value.this)) != len(names):
                self.raise_error(f"FOR has {len(names)} columns; each value of IN needs as many", first)
        if is_unpivot and len(names) > 1:
            self.raise_error("FOR of UNPIVOT takes one name, of the column that names the others", first)
        count = 0 if is_unpivot else _count_parts(made, names, values)
        if count > MOST_PARTS:
            self.raise_error(
                f"PIVOT makes {len(made) * len(values):,} columns with {count:,} names, constants and operations in "
                f"all; at most {MOST_PARTS:,} are accepted: give IN fewer values, or compute long expressions in a "
                "subquery",
                first,
            )
        return self.expression(
            exp.Pivot(
                expressions=made,
                fields=[exp.Tuple(expressions=names), exp.Tuple(expressions=values)],
                unpivot=is_unpivot,
                include_nulls=with_nulls,
                alias=alias,
            )
        )

    def _columns(self) -> list[Any]:
        """One column, or several in parentheses."""
        if self._match(TokenType.L_PAREN):
            columns = self._parse_csv(lambda: self._value(self._parse_column))
            self._match_r_paren()
            return columns
        return [self._value(self._parse_column)]

    def _named(self, parse: Any, name: Any) -> Any:
        """A part of PIVOT with its name: the one that AS gives it, or its own."""
        first, made = self._curr, self._value(parse)
        known = self._parse_alias(made)
        if isinstance(known, exp.Alias):
            return known
        own = name(made) if name is not None else " ".join(self._find_sql(first, self._prev).split())
        if own is None:
            self.raise_error(_AN_ALIAS, first)
        return self.expression(exp.Alias(this=made, alias=exp.to_identifier(own, quoted=True)))

    def _pivot_aggregate(self) -> Any:
        return self._named(self._parse_disjunction, None)

    def _pivot_value(self) -> Any:
        return self._named(self._parse_disjunction, _own_name)

    def _unpivot_column(self) -> Any:
        return self._named(self._unpivoted, lambda made: "_".join(one.name for one in _listed(made)))

    def _unpivoted(self) -> Any:
        columns = self._columns()
        return columns[0] if len(columns) == 1 else self.expression(exp.Tuple(expressions=columns))

    def _parse_simplified_pivot(self, is_unpivot: bool | None = None) -> Any:
        """PIVOT as a statement is refused; DuckDB has it."""
        self.raise_error("Unexpected token", self._prev)

    def _parse_query_modifiers(self, this: Any) -> Any:
        """The clauses of a query. A PIVOT in its FROM becomes a SELECT there."""
        made = super()._parse_query_modifiers(this)
        if isinstance(made, exp.Select):
            without_pivots(made)
        return made


def _listed(node: Node) -> list[Node]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


def _own_name(value: Node) -> str | None:
    """The text of a constant, as Spark casts it to STRING; None if it is no constant."""
    if isinstance(value, exp.Tuple):
        names = [_own_name(one) for one in value.expressions]
        return None if None in names else f"{{{', '.join(map(str, names))}}}"
    try:
        return _text(_constant(value))
    except LookupError:
        return None
    except ValueError:
        # The cast is refused where it is bound.
        return value.sql(dialect="spark")


class _Float(float):
    """A FLOAT, whose text has the digits of 32 bits."""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return casts.bool_to_string(value)
    if isinstance(value, _Float):
        return casts.float32_to_string(value)
    if isinstance(value, float):
        return casts.float_to_string(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return "null" if value is None else str(value)


def _constant(node: Node) -> Any:
    """The value of a constant; dates and moments as their text. Raises LookupError if it is none, or another form."""
    if isinstance(node, exp.Paren):
        return _constant(node.this)
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        text = str(node.this)
        if node.is_string:
            return text
        return float(text) if "e" in text.lower() else Decimal(text) if "." in text else int(text)
    if isinstance(node, exp.Cast):
        return _cast(_constant(node.this), node.to)
    if isinstance(node, exp.Anonymous) and node.name == "positive" and len(node.expressions) == 1:
        return _of_kind(_constant(node.expressions[0]), (int, float, Decimal))
    if isinstance(node, exp.Neg):
        number = _of_kind(_constant(node.this), (int, float, Decimal))
        return (number.copy_negate() if number else number) if isinstance(number, Decimal) else type(number)(-number)
    if isinstance(node, exp.Not):
        return not _of_kind(_constant(node.this), (bool,))
    if isinstance(node, exp.DPipe):
        return "".join(_of_kind(_constant(side), (str,)) for side in (node.this, node.expression))
    if type(node) in _OPERATIONS:
        one, other = (_of_kind(_constant(side), (int,)) for side in (node.this, node.expression))
        return _OPERATIONS[type(node)](one, other)
    raise LookupError


_OPERATIONS: dict[type[Node], Callable[[int, int], int]] = {
    exp.Add: operator.add, exp.Sub: operator.sub, exp.Mul: operator.mul,
}  # fmt: skip


def _of_kind(value: Any, kinds: tuple[type, ...]) -> Any:
    if (type(value) is bool and bool not in kinds) or not isinstance(value, kinds):
        raise LookupError
    return value


def _cast(value: Any, to: exp.DataType) -> Any:
    """The value of a CAST. Raises ValueError for a text that is not of the type."""
    kind = to.this.name
    if value is None:
        return None
    if kind in ("TEXT", "VARCHAR"):
        return _text(value)
    if isinstance(value, str):
        if kind == "DATE":
            return casts.date_to_string(casts.whole_date(value))
        if kind.startswith("TIMESTAMP"):
            return casts.timestamp_to_string(casts.whole_timestamp(value))
        if kind == "BOOLEAN":
            return casts.string_to_bool(value)
        if kind in _INTEGERS:
            return casts.string_to_int(value, -(2**63) + 1, 2**63 - 1)
        if kind in ("FLOAT", "DOUBLE"):
            value = casts.string_to_float(value)
    if kind in ("FLOAT", "DOUBLE"):
        number = _of_kind(value, (int, float, Decimal))
        return _Float(number) if kind == "FLOAT" else float(number)
    if kind in _INTEGERS:
        return _of_kind(value, (int,))
    if kind == "DECIMAL" and isinstance(value, (str, int, Decimal)) and not isinstance(value, bool):
        scale = int(to.expressions[1].name) if len(to.expressions) > 1 else 0
        try:
            return Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=80))
        except InvalidOperation:
            raise ValueError from None
    raise LookupError


_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")


def without_pivots(select: exp.Select) -> None:
    """Rewrite the FROM of a SELECT up to its last PIVOT as subqueries."""
    first = select.args.get("from_")
    if first is None:
        return
    while True:
        joins: list[exp.Join] = select.args.get("joins") or []
        nested: list[exp.Join] = first.this.args.get("joins") or []
        if nested and any(join.args.get("pivots") or join.this.args.get("pivots") for join in nested):
            # FROM before SELECT has its joins there.
            first.this.set("joins", None)
            joins = [*nested, *joins]
            select.set("joins", joins)
        for join in joins:
            if join.args.get("pivots"):
                # PIVOT after ON.
                join.this.set("pivots", join.args["pivots"])
                join.set("pivots", None)
        items = [first.this, *(join.this for join in joins)]
        at = next((i for i, item in enumerate(items) if item.args.get("pivots")), None)
        if at is None:
            return
        pivot = items[at].args["pivots"].pop(0)
        if not items[at].args["pivots"]:
            items[at].set("pivots", None)
        rest, before = items[at].args.get("pivots"), items[0]
        items[at].set("pivots", None)
        nested = [] if at else before.args.get("joins") or []
        if not at:
            before.set("joins", None)
        inner = exp.Select(from_=exp.From(this=before), joins=joins[:at] or None)
        (_unpivoted if pivot.args.get("unpivot") else _pivoted)(inner, pivot)
        alias = pivot.args.get("alias")
        if alias is None and not at and before.alias_or_name:
            alias = exp.TableAlias(this=exp.to_identifier(before.alias_or_name, quoted=True))
        made = exp.Subquery(this=inner, alias=alias, pivots=rest, joins=nested or None)
        if pivot.args.get("alias") is None:
            made.meta[HAS_OTHERS] = True
        _place_at(inner, pivot, [before, *joins[:at]])
        first.set("this", made)
        select.set("joins", joins[at:] or None)


def _place_at(select: exp.Select, pivot: exp.Pivot, written: Sequence[Node]) -> None:
    """Give the nodes of a SELECT the place of a PIVOT, except those that are written."""
    for node in select.walk(prune=lambda node: any(node is one for one in written)):
        node.meta.setdefault(SPAN, pivot.meta.get(SPAN, (0, 0)))


def _but(columns: Sequence[Node], *names: str) -> exp.Star:
    """``* EXCEPT`` of columns and names."""
    every = dict.fromkeys([*(one.name.lower() for one in columns if isinstance(one, exp.Column)), *names])
    named = [exp.column(exp.to_identifier(name, quoted=True)) for name in every if name != "*"]
    return exp.Star(except_=named)


def _count_parts(aggregates: Sequence[Node], names: Sequence[Node], values: Sequence[Node]) -> int:
    """The number of nodes in the columns that a PIVOT makes: each has an aggregate, and tests of a value by each call
    and by the count of rows."""
    tests = sum(map(_size, values)) + len(values) * sum(map(_size, names))
    calls = sum(2 + sum(1 for _ in one.find_all(exp.Anonymous)) for one in aggregates)
    return len(values) * sum(map(_size, aggregates)) + calls * tests


def _size(node: Node) -> int:
    return sum(1 for _ in node.walk())


def _pivoted(select: exp.Select, pivot: exp.Pivot) -> None:
    """Add the list and GROUP BY of a PIVOT to a SELECT."""
    names, values = (part.expressions for part in pivot.args["fields"])
    aggregates = pivot.expressions
    named = [column for one in (*names, *aggregates) for column in one.find_all(exp.Column)]
    items: list[Node] = [_but(named)]
    for value in values:
        tests: list[Node] = [
            exp.NullSafeEQ(this=name.copy(), expression=exp.Paren(this=one.copy()))
            for name, one in zip(names, _listed(value.this), strict=True)
        ]
        test = exp.and_(*tests, copy=False) if len(tests) > 1 else tests[0]
        for aggregate in aggregates:
            name = value.alias if len(aggregates) == 1 else f"{value.alias}_{aggregate.alias}"
            made = _over(aggregate.this, test)
            items.append(exp.Alias(this=made, alias=exp.to_identifier(name, quoted=True)))
    select.set("expressions", items)
    select.set("group", exp.Group(expressions=[exp.column("all")]))


def _over(aggregate: Node, test: Node) -> Node:
    """An expression of aggregates over the rows that pass a test, NULL if there is none."""
    whole = exp.Paren(this=aggregate.copy())
    calls = [one for one in whole.find_all(exp.Anonymous) if is_aggregate_name(one.name.lower())]
    if not calls:
        # An aggregate of the user, unknown here; the FILTER of another function is refused.
        calls = [one for one in whole.find_all(exp.Anonymous) if one.find_ancestor(exp.Anonymous) is None]
    for call in calls:
        around = call.parent
        if isinstance(around, exp.Filter):
            where = around.expression
            both = exp.And(this=exp.Paren(this=where.this.copy()), expression=exp.Paren(this=test.copy()))
            where.set("this", both)
            continue
        made = exp.Filter(expression=exp.Where(this=test.copy()))
        call.replace(made)
        made.set("this", call)
    if len(calls) == 1 and whole.this in (calls[0], calls[0].parent) and calls[0].name.lower() in _NULL_OVER_NONE:
        only: Node = whole.this
        return only
    count = exp.Anonymous(this="count", expressions=[exp.Star()])
    some = exp.GT(
        this=exp.Filter(this=count, expression=exp.Where(this=test.copy())), expression=exp.Literal.number(0)
    )
    return exp.Case(ifs=[exp.If(this=some, true=whole)])


def _unpivoted(select: exp.Select, pivot: exp.Pivot) -> None:
    """Add the list, the join and WHERE of an UNPIVOT to a SELECT."""
    (name,), items = (part.expressions for part in pivot.args["fields"])
    rows = [
        exp.Tuple(expressions=[exp.Literal.number(i), exp.Literal.string(one.alias)]) for i, one in enumerate(items)
    ]
    columns = [exp.to_identifier(one, quoted=True) for one in (_PLACE, _NAME)]
    alias = exp.TableAlias(this=exp.to_identifier("\x1ditems", quoted=True), columns=columns)
    select.append("joins", exp.Join(this=exp.Values(expressions=rows, alias=alias), kind="CROSS"))
    place, word = (exp.column(column.copy()) for column in columns)
    taken = [column for one in items for column in _listed(one.this)]
    values = []
    for i in range(len(pivot.expressions)):
        ifs = [
            exp.If(this=exp.EQ(this=place.copy(), expression=exp.Literal.number(n)), true=_listed(one.this)[i].copy())
            for n, one in enumerate(items)
        ]
        values.append(exp.Case(ifs=ifs))
    shown = zip([word, *values], [name, *pivot.expressions], strict=True)
    listed = [exp.Alias(this=value, alias=column.this.copy()) for value, column in shown]
    select.set("expressions", [_but(taken, _PLACE, _NAME), *listed])
    if not pivot.args.get("include_nulls"):
        tests = [exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null())) for value in values]
        select.set("where", exp.Where(this=exp.or_(*tests, copy=False) if len(tests) > 1 else tests[0]))
