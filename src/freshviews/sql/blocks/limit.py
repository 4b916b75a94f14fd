"""Reads ``ORDER BY`` and ``LIMIT``, and makes the SELECT of the first rows.

Rows with equal values of ORDER BY are ordered by all columns of the SELECT list. So the result depends on the tables
alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from freshviews.catalog.definitions import SortPlace
from freshviews.errors import SqlError
from freshviews.expr.nodes import Expr, Literal
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import Bound, Item, Limited, Select, Sort
from freshviews.sql.expressions.build import key
from freshviews.sql.expressions.expression import Binder
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import INT

MOST = 2**31 - 1
"""The largest LIMIT or OFFSET, as in Spark."""
_PARTS = ("order", "limit", "offset")


@dataclass(frozen=True)
class Clause:
    """ORDER BY, LIMIT and OFFSET as written; ``limit`` is None without LIMIT."""

    order: tuple[exp.Ordered, ...]
    limit: int | None
    offset: int


def clause_of(text: SqlText, node: Node) -> Clause | None:
    """The clause of a query; None if it has none. Raises UnsupportedSql if a part is missing or out of order."""
    order, limit, offset = (node.args.get(name) for name in _PARTS)
    if limit is None:
        by = () if order is None else tuple(order.expressions)
        if offset is not None:
            return Clause(by, MOST, _number(text, offset, "OFFSET"))
        return None if order is None else Clause(by, None, 0)
    if isinstance(limit, exp.Fetch):
        raise text.unsupported(
            limit, "FETCH ... PERCENT", "write FETCH FIRST n ROWS ONLY, or FETCH FIRST n ROWS WITH TIES"
        )
    plain = isinstance(limit, exp.Limit) and not limit.args.get("limit_options") and not limit.expressions
    if not plain:
        raise text.unsupported(limit, "this LIMIT", "write LIMIT n with a number of rows")
    for before, after in ((order, limit), (limit, offset)):
        if before is not None and after is not None and text.at(after) < text.at(before):
            what = f"{_word(before)} after {_word(after)}"
            raise text.unsupported(before, what, "write ORDER BY ... LIMIT n OFFSET m")
    if offset is not None and text.at(offset.expression) < text.at(limit.expression):
        raise text.unsupported(limit, "LIMIT of two numbers", "write ORDER BY ... LIMIT n OFFSET m")
    rows = _number(text, limit, "LIMIT")
    skipped = 0 if offset is None else _number(text, offset, "OFFSET")
    return Clause(() if order is None else tuple(order.expressions), rows, skipped)


def has_limit(node: Node) -> bool:
    """True if a query has a LIMIT or an OFFSET, inside or after its parentheses."""
    own = any(node.args.get(name) is not None for name in ("limit", "offset"))
    return own or (isinstance(node, exp.Subquery) and has_limit(node.this))


def check_operand(text: SqlText, node: Node, word: str) -> None:
    """Raise UnsupportedSql if an operand of UNION, EXCEPT or INTERSECT has a clause that belongs at the end of the
    query."""
    found = [node.args[name] for name in _PARTS if node.args.get(name) is not None]
    if isinstance(node, exp.Select) and found:
        clause = min(found, key=text.at)
        what = f"{_word(clause)} in a SELECT of {word}, without parentheses,"
        raise text.unsupported(clause, what, "put that SELECT in parentheses")


def _word(clause: Node) -> str:
    return type(clause).__name__.upper().replace("ORDER", "ORDER BY")


def _number(text: SqlText, node: Node, word: str) -> int:
    value = node.args.get("expression")
    error = text.error(value or node, f"{word} takes a constant, a whole number from 0 to {MOST}")

    def refused(_: exp.Column) -> Expr:
        raise error

    found = None if value is None else Binder(text, refused, word).bind(value)
    if not isinstance(found, Literal) or found.type != INT or found.value is None or int(found.value) < 0:
        raise error
    return int(found.value)


def places_of(
    clause: Clause, items: tuple[Item, ...], binder: Binder, position: Callable[[exp.Literal], int]
) -> tuple[tuple[SortPlace, ...], tuple[Item, ...], tuple[Node, ...]]:
    """The position in the list of each ORDER BY column, the items to add to the list, and their nodes."""
    every = list(items)
    places: list[SortPlace] = []
    nodes: list[Node] = []
    for ordered in clause.order:
        node = ordered.this
        if len(clause.order) == 1 and _is_all(node.unnest(), binder):
            found = list(range(len(items)))
        elif isinstance(node, exp.Literal) and not node.is_string:
            found = [position(node)]
        else:
            expr = binder.bind(node)
            if isinstance(expr, Literal):
                continue
            found = [i for i, item in enumerate(every) if key(item.expr) == key(expr)][:1]
            if not found:
                found = [len(every)]
                every.append(Item(f"order_{len(every) - len(items) + 1}", expr))
                nodes.append(node)
        descending, nulls_last = bool(ordered.args.get("desc")), not ordered.args.get("nulls_first")
        places += [SortPlace(i, descending, nulls_last) for i in found]
    return tuple(places), tuple(every[len(items) :]), tuple(nodes)


def _is_all(node: Node, binder: Binder) -> bool:
    """True for ALL, if no column has this name."""
    if not isinstance(node, exp.Column) or node.table or node.name.lower() != "all":
        return False
    try:
        binder.resolve(node)
    except SqlError:
        return True
    return False


def limited(select: Select, clause: Clause, places: tuple[SortPlace, ...], columns: int) -> Bound:
    """The first rows of a bag over one source; only the first ``columns`` columns are visible.

    Ties in ORDER BY are broken by all columns of the SELECT list, from left to right. So the rows of the view depend on
    the tables alone. LIMIT without ORDER BY keeps the first rows in the order of all columns. An ORDER BY expression
    that is not in the list becomes a hidden column. If the query does more than read rows of one relation, an internal
    view provides the rows.
    """
    assert clause.limit is not None
    order = tuple(Sort(select.items[p.column].expr, p.descending, p.nulls_last) for p in places)
    made = Limited(order, clause.limit, clause.offset)
    return Bound((replace(select, items=select.items[:columns], limit=made),))
