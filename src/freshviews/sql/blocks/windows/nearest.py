"""Rewrites ASOF JOIN, which joins each row of the left side with the nearest row of the right side, in an order.

A row of the right side is the nearest one for a range of values of the left side. The range begins at the value of this
row and ends at the value of the next row, which LEAD or LAG finds. So ASOF is a join by comparisons::

    t ASOF JOIN p ON t.k = p.k AND t.ts >= p.ts
    t JOIN (SELECT *, LEAD(ts) OVER (PARTITION BY k ORDER BY ts) AS end FROM p) p
      ON t.k = p.k AND t.ts >= p.ts AND t.ts < p.end

Rows of the right side with the same value are ordered by all their columns. The last of these rows is the match for >=
and >, the first one for <= and <. The ranges of the others are empty. An internal view is needed for a LEFT JOIN, or if
ON reads several sources of the left side. It joins the right side with the distinct left values that ON compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.sql.blocks.bound import Bound, Item, Select, Sort
from freshviews.sql.blocks.enclosing import Names
from freshviews.sql.blocks.joins.dependent import values_of
from freshviews.sql.blocks.joins.tree import Joined, free_alias
from freshviews.sql.blocks.optional import EQUALITIES, equality
from freshviews.sql.blocks.views import Views
from freshviews.sql.blocks.windows.binding import Window
from freshviews.sql.blocks.windows.rows import Numbers, joined_with
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import Refusal, call, integer, nodes_of, null, replaced, retyped
from freshviews.sql.names.scope import Source, alias_of, aliases_in
from freshviews.sql.text.parse import Node
from freshviews.types import BIGINT, BOOLEAN

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_GREATEST, _LEAST = 2**63 - 1, 1 - 2**63
_ACCEPTED = (
    "write ON with equalities of the two sides and one comparison, as in a.k = b.k AND a.ts >= b.ts"
)


def nearest(
    node: exp.Join,
    left: Joined,
    right: Joined,
    on: Sequence[Expr],
    taken: list[str],
    around: Names | None,
    views: Views,
) -> tuple[Joined, tuple[Expr, ...]]:
    """The right side of an ASOF JOIN, one source, and the predicates that join it. Raises Refusal for another ON."""
    (base,) = right.sources
    equal, sign, own, other = _parts(on, left, base)
    if own.type.is_float or own.type.is_text:
        raise Refusal(f"an ASOF JOIN by a {own.type}", "cast it to DECIMAL(18, s), BIGINT or TIMESTAMP")
    source, end = _with_ends(node, base, [one for one, _ in equal], other, sign, views)
    op = "le" if sign in ("ge", "gt") else "ge"
    limit = call(op, (retyped(own, BIGINT), end), BOOLEAN)
    match = call("disjoint", (logic.both(call(sign, (own, other), BOOLEAN), limit),), BOOLEAN)
    terms = [call(one.op, (theirs, mine), BOOLEAN) for (mine, theirs), one in equal.items()]
    made: tuple[Expr, ...] = (*terms, match)
    compared = {n.name: n for term in made for n in nodes_of(term) if isinstance(n, Column)}
    columns = [one for name, one in compared.items() if alias_of(name) != base.alias]
    is_left = (node.side or "").upper() == "LEFT" or node.args.get("match_condition") is not None
    if not is_left and len({alias_of(one.name) for one in columns}) == 1:
        return Joined((source,), scope=right.scope), made
    domain = views.shared_source(values_of(left, tuple(columns), around, views))
    domain = replace(domain, alias=free_alias("keys", taken))
    keys = [domain.column(column) for column in domain.columns]
    to = {one.name: key for one, key in zip(columns, keys, strict=True)}
    tests = tuple(replaced(one, lambda p: to.get(p.name) if isinstance(p, Column) else None) for one in made)
    names = [column.name for column in base.columns]
    items = [Item(column.name, base.column(column)) for column in base.columns]
    for i, key in enumerate(keys, 1):
        items.append(Item(free_alias(f"k{i}", names), key))
    view = views.internal_view(Bound((Select("bag", (domain, source), tests, tuple(items)),)))
    found = replace(views.source_of(view), alias=base.alias)
    own_keys = [found.column(column) for column in found.columns[len(base.columns) :]]
    on_keys = tuple(equality(key, column) for key, column in zip(own_keys, columns, strict=True))
    return Joined((found,), scope=right.scope), on_keys


def _parts(on: Sequence[Expr], left: Joined, base: Source) -> tuple[dict[tuple[Expr, Expr], Call], str, Expr, Expr]:
    """The equalities, by their sides of the right and the left, and the comparison of a value of the left side with one
    of the right side."""
    equal: dict[tuple[Expr, Expr], Call] = {}
    orders: list[tuple[str, Expr, Expr]] = []
    for one in on:
        sides = [aliases_in(arg) for arg in one.args] if isinstance(one, Call) and len(one.args) == 2 else []
        mine = [i for i, side in enumerate(sides) if side == {base.alias}]
        theirs = [i for i, side in enumerate(sides) if side and side <= left.aliases]
        if not isinstance(one, Call) or len(mine) != 1 or len(theirs) != 1:
            raise Refusal("this ON of an ASOF JOIN", _ACCEPTED)
        own, other = one.args[theirs[0]], one.args[mine[0]]
        name = one.op.removesuffix("_float").removesuffix("_string")
        if one.op in EQUALITIES:
            equal[other, own] = one
        elif name in _TURNED:
            orders.append((name if theirs[0] == 0 else _TURNED[name], own, other))
        else:
            raise Refusal("this ON of an ASOF JOIN", _ACCEPTED)
    if len(orders) != 1:
        raise Refusal(f"an ASOF JOIN with {len(orders)} comparisons by <, <=, > or >=", _ACCEPTED)
    return equal, *orders[0]


def _with_ends(
    node: Node, base: Source, keys: Sequence[Expr], value: Expr, sign: str, views: Views
) -> tuple[Source, Expr]:
    """The rows of a source with a last column, the last value, or the first, for which a row is the nearest one."""
    before = sign in ("ge", "gt")
    order = (Sort(value, False, False),)
    window = Window(node, tuple(keys), order, "", value, (), shift=1 if before else -1, default=null(value.type))
    beside, joined = joined_with(window, base, (), Joined((base,)), views, lambda expr: expr, Numbers())
    end = retyped(beside, BIGINT)
    if sign in ("ge", "le"):
        end = call("sub_int" if before else "add_int", (end, integer(1)), BIGINT)
    end = call("coalesce", (end, Literal(_GREATEST if before else _LEAST, BIGINT)), BIGINT)
    names = [column.name for column in base.columns]
    items = [Item(column.name, base.column(column)) for column in base.columns]
    items.append(Item(free_alias("end", names), end))
    known = call("is_not_null", (value,), BOOLEAN)
    view = views.internal_view(Bound((Select("bag", joined.sources, (known,), tuple(items)),)))
    source = replace(views.source_of(view), alias=base.alias)
    return source, source.column(source.columns[-1])
