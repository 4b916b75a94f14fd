"""Writes the arithmetic of integer payloads: factors, products and additions. Also writes tests for zero payloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from freshviews.codegen.layout import row_layout
from freshviews.codegen.writing.context import Context
from freshviews.program.payload import ComponentOf, Monomial, Value
from freshviews.program.statements import Sum
from freshviews.program.views import View


def ring_of(context: Context, factor: ComponentOf | Value) -> str:
    if isinstance(factor, Value):
        return factor.ring
    return next(c.ring for c in context.aliases[factor.alias].components if c.name == factor.component)


def word(context: Context, factor: ComponentOf | Value) -> str:
    """Source of an integer factor."""
    if isinstance(factor, Value):
        return context.variable(factor.name)
    holder = context.aliases[factor.alias]
    if isinstance(holder, Sum):
        return context.local(factor.alias, factor.component)
    return f"load({context.row(factor.alias)}, {row_layout(holder).offsets[factor.component]})"


def product(context: Context, factors: Sequence[ComponentOf | Value], coefficient: int) -> str:
    """Source of the product of integer factors and a coefficient. The longest product of the first factors that is
    known is not computed again."""
    first = next((i for i in range(len(factors), 1, -1) if tuple(factors[:i]) in context.products), 0)
    known = [context.products[tuple(factors[:first])]] if first else []
    words = known + [word(context, factor) for factor in factors[first:]]
    if coefficient != 1 or not words:
        words.append(str(coefficient))
    return times(context, words[0], words[1:])


def with_products(context: Context, payload: Sequence[Monomial]) -> Context:
    """Compute the products that the monomials of a payload begin with, for them and for all that is nested below: a
    chain of n joins multiplies n factors in each of n additions. They end before the first factor that may change;
    values, and rows of views that the function does not change, stay."""
    for monomial in payload:
        factors = tuple(takewhile(partial(_is_steady, context), monomial.factors))
        if len(factors) > 1 and factors not in context.products:
            source, name = product(context, factors, 1), context.fresh("product")
            context.line(f"{name} = {source}")
            context = replace(context, products={**context.products, factors: name})
    return context


def _is_steady(context: Context, factor: ComponentOf | Value) -> bool:
    """True if an integer factor keeps its value until its alias or variable is bound again."""
    if ring_of(context, factor) != "integer":
        return False
    if isinstance(factor, Value):
        return True
    holder = context.aliases[factor.alias]
    return isinstance(holder, View) and context.changing is not None and holder.name not in context.changing


def times(context: Context, source: str, words: Sequence[str]) -> str:
    """Source of an integer multiplied by others."""
    for one in words:
        source = f"times({source}, {one}, status)"
    return source


def integer(context: Context, monomial: Monomial) -> str:
    """Source of a monomial of integers."""
    return product(context, monomial.factors, monomial.coefficient)


def add_integer(context: Context, row: str, place: int, amount: str) -> None:
    """Add to an integer word of a row."""
    context.line(f"store({row}, {place}, plus(load({row}, {place}), {amount}, status))")


def zero_test(context: Context, view: View, row: str) -> str:
    """Source of whether the payload of a row is zero."""
    layout = row_layout(view)
    words = layout.payload - bool(view.tally)
    if words <= 4 or view.tally:
        return " and ".join(f"load({row}, {layout.key + i}) == 0" for i in range(words))
    return f"is_zero({context.table(view.name)}, {row})"
