"""Rewrites expressions over two relations as sums of products, in which each factor reads only one relation.

``a.volume - b.volume`` becomes ``a.volume * 1 - 1 * b.volume``.
"""

from __future__ import annotations

from collections.abc import Iterable

from freshviews.expr.nodes import Call, Expr, Literal, columns_of
from freshviews.expr.ops import may_fail
from freshviews.plan.delta.range_sums.bounds import beyond, narrow
from freshviews.plan.delta.range_sums.grid import MOST_TERMS, is_on_grid, joined
from freshviews.records import dataclass
from freshviews.types import BIGINT, BOOLEAN, DOUBLE

_MOST = 2**40
_MOST_OF_PRODUCTS = 2**28
"""Maximum limits within which, for a million rows, sums of terms and of products of two terms fit 64 bits."""


@dataclass(frozen=True)
class Product:
    """``coefficient * row * outside``; a factor of None is 1. At most one of them is a double."""

    coefficient: int
    row: Expr | None = None
    outside: Expr | None = None


@dataclass(frozen=True)
class Products:
    """A sum of products. ``checked``: the terms, whose magnitudes must be at most ``limit``; doubles must be on the
    grid."""

    parts: tuple[Product, ...]
    checked: tuple[Expr, ...]
    limit: int


def products_of(expr: Expr, opened: frozenset[str]) -> Products | None:
    """A number as a sum of products of factors over the ``opened`` variables of a row and over others; None if it has
    another form. ``coalesce(x, 0)`` is x, or 0 if a term of x is NULL.

    The sum is over the stored rows of one relation, here ``a``. Each product has one factor over columns of the stored
    row (``a.volume``, ``1``), and one over other columns (``1``, ``b.volume``). So the sum of the lift over many rows
    needs only sums of the first factors. Integer arithmetic is checked, so a factor must not exceed a limit
    (``bounds``).

    ``a - b`` of doubles is rounded before it is summed, so it is split only for values on a grid (``grid``). A product
    of a double of the stored row and another double is not split.
    """
    inner = expr
    if isinstance(expr, Call) and expr.op == "coalesce":
        if len(expr.args) != 2 or not isinstance(expr.args[1], Literal) or expr.args[1].value != 0:
            return None
        inner = expr.args[0]
    elif expr.nullable:
        return None
    parts = _parts(inner, opened)
    if parts is None:
        return None
    rows = _terms(part.row for part in parts)
    others = _terms(part.outside for part in parts)
    limit: int | None = _MOST
    if inner.type.is_float:
        limit = None if len(parts) > MOST_TERMS else limit
    else:
        limit = narrow((inner,), _MOST_OF_PRODUCTS if any(part.row and part.outside for part in parts) else _MOST)
    if limit is None:
        return None
    known = [tuple(term for term in terms if term.nullable) for terms in (rows, others)]
    wide = beyond(rows, limit)
    made = tuple(
        Product(p.coefficient, _beyond_to_0(_null_to_0(p.row, known[0]), wide), _null_to_0(p.outside, known[1]))
        for p in parts
    )
    return Products(made, (*rows, *others), limit)


def _beyond_to_0(factor: Expr | None, wide: Expr | None) -> Expr | None:
    """A factor, or 0 if a term of the row is beyond the limit: such rows are not summed, so sums of the others fit."""
    if factor is None or wide is None:
        return factor
    zero = _number(0, factor)
    return Call("case", (wide, zero, factor), zero.type, False)


def _terms(factors: Iterable[Expr | None]) -> tuple[Expr, ...]:
    return tuple(dict.fromkeys(one for one in factors if one is not None and not isinstance(one, Literal)))


def _parts(expr: Expr, opened: frozenset[str]) -> list[Product] | None:
    if isinstance(expr, Literal) and isinstance(expr.value, float):
        return [Product(1, outside=expr)] if is_on_grid(expr.value) else None
    if isinstance(expr, Literal):
        return [Product(expr.value)] if isinstance(expr.value, int) and not isinstance(expr.value, bool) else None
    if not may_fail(expr):
        names = columns_of(expr)
        if opened.isdisjoint(names):
            return [Product(1, outside=expr)]
        if opened.issuperset(names):
            return [Product(1, row=expr)]
    assert isinstance(expr, Call)
    if expr.op in ("add_float", "sub_float", "neg_float"):
        found = [_parts(arg, opened) for arg in expr.args]
        signs = (-1,) if expr.op == "neg_float" else (1, 1 if expr.op == "add_float" else -1)
        if any(one is None for one in found):
            return None
        return [_times(part, Product(sign)) for one, sign in zip(found, signs, strict=True) for part in one or ()]
    if expr.op not in ("add_int", "sub_int", "mul_int", "scale_up", "neg_int", "check_range"):
        return None
    first = _parts(expr.args[0], opened)
    if first is None or expr.op == "check_range":
        return first
    if expr.op == "neg_int":
        return [_times(part, Product(-1)) for part in first]
    second = _parts(expr.args[1], opened)
    if second is None:
        return None
    if expr.op in ("add_int", "sub_int"):
        return [*first, *(_times(part, Product(1 if expr.op == "add_int" else -1)) for part in second)]
    if any((one.row and two.row) or (one.outside and two.outside) for one in first for two in second):
        return None
    return [_times(one, two) for one in first for two in second]


def _times(one: Product, two: Product) -> Product:
    """The product of two, of which at most one has a factor on each side."""
    return Product(one.coefficient * two.coefficient, one.row or two.row, one.outside or two.outside)


def _null_to_0(factor: Expr | None, terms: tuple[Expr, ...]) -> Expr | None:
    """A factor, or 0 where one of the terms is NULL."""
    known = joined("and", (Call("is_not_null", (term,), BOOLEAN, False) for term in terms))
    if known is None:
        return factor
    zero = _number(0, factor)
    return Call("case", (known, factor or _number(1), zero), zero.type, False)


def _number(value: int, like: Expr | None = None) -> Literal:
    """A number of the type of a factor; an integer where there is none."""
    return Literal(float(value), DOUBLE) if like is not None and like.type.is_float else Literal(value, BIGINT)
