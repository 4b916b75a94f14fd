"""Lifts across relations as sums of products: ``a.volume - b.volume`` is ``a.volume * 1 - 1 * b.volume``.

Each product has one factor over the variables of a row and one over terms that are known outside, so the sum of the
lift over many rows is made of sums of the first factors. Integer arithmetic is checked, so the products come with a
limit of the magnitudes of the terms, as ranges do (``bounds``); with it, sums of millions of rows fit 64 bits, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freshviews.expr.nodes import Call, Expr, Literal, columns_of
from freshviews.expr.ops import may_fail
from freshviews.plan.delta.bounds import beyond, narrow
from freshviews.types import BIGINT, BOOLEAN

_MOST = 2**40
_MOST_OF_PRODUCTS = 2**28
"""Greatest limits: of a million rows, sums of terms, or of products of two, fit 64 bits."""


@dataclass(frozen=True)
class Product:
    """``coefficient * row * outside``; a factor of None is 1."""

    coefficient: int
    row: Expr | None = None
    outside: Expr | None = None


@dataclass(frozen=True)
class Products:
    """A sum of products. ``checked``: the terms, of which the magnitudes must be at most ``limit``."""

    parts: tuple[Product, ...]
    checked: tuple[Expr, ...]
    limit: int


def products_of(expr: Expr, opened: frozenset[str]) -> Products | None:
    """An integer expression as a sum of products, of factors over the ``opened`` variables of a row and over others;
    None if it has another form. ``coalesce(x, 0)`` is x, or 0 if a term of x is NULL."""
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
    limit = narrow((inner,), _MOST_OF_PRODUCTS if any(part.row and part.outside for part in parts) else _MOST)
    if limit is None:
        return None
    known = [tuple(term for term in terms if term.nullable) for terms in (rows, others)]
    wide = beyond(rows, limit)
    made = tuple(
        Product(p.coefficient, _within(_guarded(p.row, known[0]), wide), _guarded(p.outside, known[1])) for p in parts
    )
    return Products(made, (*rows, *others), limit)


def _within(factor: Expr | None, wide: Expr | None) -> Expr | None:
    """A factor, or 0 where a term of the row is beyond the limit: such rows are not summed, so sums of others fit."""
    if factor is None or wide is None:
        return factor
    return Call("case", (wide, Literal(0, BIGINT), factor), BIGINT, False)


def _terms(factors: Iterable[Expr | None]) -> tuple[Expr, ...]:
    return tuple(dict.fromkeys(factor for factor in factors if factor is not None))


def _parts(expr: Expr, opened: frozenset[str]) -> list[Product] | None:
    if isinstance(expr, Literal):
        return [Product(expr.value)] if isinstance(expr.value, int) and not isinstance(expr.value, bool) else None
    if not may_fail(expr):
        names = columns_of(expr)
        if opened.isdisjoint(names):
            return [Product(1, outside=expr)]
        return [Product(1, row=expr)] if opened.issuperset(names) else None
    assert isinstance(expr, Call)
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


def _guarded(factor: Expr | None, terms: tuple[Expr, ...]) -> Expr | None:
    """A factor, or 0 where one of the terms is NULL."""
    if not terms:
        return factor
    known: Expr | None = None
    for term in terms:
        one = Call("is_not_null", (term,), BOOLEAN, False)
        known = one if known is None else Call("and", (known, one), BOOLEAN, False)
    assert known is not None
    return Call("case", (known, factor or Literal(1, BIGINT), Literal(0, BIGINT)), BIGINT, False)
