"""Payloads: source of factors and products, additions to accumulators and rows, tests for zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from freshviews.codegen.layout import row_layout
from freshviews.codegen.writing.context import Context
from freshviews.program.payload import ZERO, ComponentOf, Monomial, Value
from freshviews.program.statements import Emit, Into, Sum
from freshviews.program.views import View
from freshviews.ring import RINGS


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
    chain of n joins multiplies n factors in each of n additions. They end before the first factor that may change: all
    but values and rows of views that the function does not change."""
    for monomial in payload:
        factors = tuple(takewhile(partial(_is_steady, context), monomial.factors))
        if len(factors) > 1 and factors not in context.products:
            source, name = product(context, factors, 1), context.fresh("product")
            context.line(f"{name} = {source}")
            context = replace(context, products={**context.products, factors: name})
    return context


def _is_steady(context: Context, factor: ComponentOf | Value) -> bool:
    """Whether an integer factor has the same value until another row has its alias, or the variable another value."""
    if ring_of(context, factor) == "real":
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


def add_real(context: Context, target: str, monomial: Monomial) -> None:
    """Add to the words of a real: the one real factor times the product of the integer factors."""
    real = next(f for f in monomial.factors if ring_of(context, f) == "real")
    rest = list(monomial.factors)
    rest.remove(real)
    amount = product(context, rest, monomial.coefficient)
    if isinstance(real, Value):
        context.line(f"real_add_double({target}, {context.variable(real.name)}, {amount})")
        return
    holder = context.aliases[real.alias]
    if isinstance(holder, Sum):
        source = context.local(real.alias, real.component)
    else:
        source = f"{context.row(real.alias)} + {8 * row_layout(holder).offsets[real.component]}"
    context.line(f"real_add_scaled({target}, {source}, {amount})")


def write_into(context: Context, statement: Into) -> None:
    """Add to the accumulators of a Sum."""
    total = context.aliases[statement.alias]
    assert isinstance(total, Sum)
    for component, monomial in zip(total.components, statement.payload, strict=True):
        local = context.local(statement.alias, component.name)
        if monomial == ZERO:
            continue
        if component.ring == "real":
            add_real(context, local, monomial)
        else:
            context.line(f"{local} = plus({local}, {integer(context, monomial)}, status)")


def write_emitted(context: Context, statement: Emit, target: str, first: int) -> None:
    """Write the payload of an Emit to the words of ``target``, from word ``first`` on."""
    place = first
    for component, monomial in zip(context.program.result.emitted, statement.payload, strict=True):
        words = RINGS[component.ring].words
        if words == 1:
            context.line(f"store({target}, {place}, {integer(context, monomial)})")
        else:
            context.line(f"clear_real({target} + {8 * place})")
            add_real(context, f"{target} + {8 * place}", monomial)
        place += words


def write_emit(context: Context, statement: Emit) -> None:
    """Append a row to the changes."""
    row = context.fresh("out")
    context.line(f"{row} = append(changes)")
    for i, variable in enumerate(statement.row):
        context.line(f"store({row}, {i}, {context.variable(variable)})")
    write_emitted(context, statement, row, len(statement.row))


def zero_test(context: Context, view: View, row: str) -> str:
    """Source of whether the payload of a row is zero."""
    layout = row_layout(view)
    words = layout.payload - bool(view.tally)
    if words <= 4 or view.tally:
        return " and ".join(f"load({row}, {layout.key + i}) == 0" for i in range(words))
    return f"is_zero({context.table(view.name)}, {row})"
