"""Writes one loop that computes doubles, and one loop that adds them to many sums.

A statement for each sum would take long to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from freshviews.codegen.layout import STATUS_SHAPES, row_layout
from freshviews.codegen.scalars import write_expression
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.integers import product, ring_of
from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.expr.ops import may_fail
from freshviews.kernel.rings import doubles
from freshviews.program.payload import ZERO, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Parameter
from freshviews.program.views import View
from freshviews.ring import NARROW, RealRing, named

LEAST = 8

Addition = tuple[Component, int, Monomial]
"""A component of a payload, its first word, and its addend."""

_KINDS = {"mul_float": doubles.PRODUCT, "mul_rest": doubles.REST}


def with_doubles(
    context: Context, parameters: Sequence[Parameter], variable: Callable[[str], str]
) -> tuple[Context, list[Parameter]]:
    """Compute the parameters that are products of doubles, where there are many, and doubles that are summed beside
    them; return the context in which they are words, and the other parameters.

    Functions of repeated bodies take variables as arguments: where there are some, nothing is computed.
    """
    found = {parameter.name: factors for parameter in parameters if (factors := _factors(parameter.expr))}
    if context.repeated or sum(kind != doubles.VALUE for kind, _ in found.values()) < LEAST:
        return context, list(parameters)
    codes: dict[Expr, int] = {}
    table: list[int] = []
    for kind, exprs in found.values():
        table += (kind, *(codes.setdefault(expr, len(codes)) for expr in exprs))
    room = len(codes) + len(found)
    at = context.writer.module.shape((*table, *[0] * room))
    start, values = context.fresh("codes"), context.fresh("doubles")
    context.line(f"{start} = load(status, {STATUS_SHAPES}) + {8 * (at + len(table))}")
    context.line(f"{values} = {start} + {8 * len(codes)}")
    for expr, place in codes.items():
        context.line(f"store({start}, {place}, {write_expression(context.writer, expr, variable)})")
    words = f"load(status, {STATUS_SHAPES}) + {8 * at}"
    context.line(f"values_of_doubles({values}, {start}, {words}, {len(found)})")
    places = {name: (values, place) for place, name in enumerate(found)}
    return replace(context, doubles=places), [p for p in parameters if p.name not in found]


def _factors(expr: Expr) -> tuple[int, tuple[Expr, Expr, Expr]] | None:
    """The factors and the condition of a double that is a product of two others (itself twice if it is no product),
    with 0 where a factor or a third value is NULL; None for values of other kinds."""
    if not expr.type.is_float:
        return None
    known = isinstance(expr, Call) and expr.op == "coalesce" and len(expr.args) == 2
    value = expr
    if isinstance(expr, Call) and known:
        value, otherwise = expr.args
        if not (isinstance(otherwise, Literal) and otherwise.value == 0):
            return None
    elif expr.nullable:
        return None
    if isinstance(value, Call) and value.op in _KINDS:
        (one, where), (other, also) = map(_where_known, value.args)
        if where == also:
            return _KINDS[value.op], (one, other, where)
        return _KINDS[value.op], (value.args[0], value.args[1], value.args[0])
    value, where = _where_known(value)
    return doubles.VALUE, (value, value, where)


def _where_known(expr: Expr) -> tuple[Expr, Expr]:
    """An expression, and the value that must not be NULL for it: itself, or the test of a CASE around it."""
    if isinstance(expr, Call) and expr.op == "case" and len(expr.args) == 3:
        test, value, otherwise = expr.args
        null = isinstance(otherwise, Literal) and otherwise.value is None
        if null and isinstance(test, Call) and test.op == "is_not_null" and not may_fail(value):
            return value, test.args[0]
    return expr, expr


def add_reals(context: Context, target: str, additions: Sequence[Addition]) -> list[Addition]:
    """Write the additions to exact sums of doubles that can be made together; return the others.

    ``target``: the address that the words of the components count from.
    """
    groups: dict[tuple[str, str, bool], list[tuple[Addition, int]]] = {}
    for addition in additions:
        source = _source(context, addition)
        if source is not None:
            address, place, amount = source
            narrow = named(addition[0].ring) is NARROW
            groups.setdefault((address, amount, narrow), []).append((addition, place))
    written: set[int] = set()
    for (address, amount, narrow), members in groups.items():
        if len(members) < LEAST:
            continue
        table = [word for (_, offset, _), place in members for word in (offset, place)]
        words = f"load(status, {STATUS_SHAPES}) + {8 * context.writer.module.shape(tuple(table))}"
        summed = any(address == start for start, _ in context.doubles.values())
        kernel = f"{'narrows' if narrow else 'reals'}_add_{'doubles' if summed else 'scaled'}"
        status = ", status" if narrow else ""
        context.line(f"{kernel}({target}, {address}, {words}, {len(members)}, {amount}{status})")
        written.update(offset for (_, offset, _), _ in members)
    return [addition for addition in additions if addition[1] not in written]


def _source(context: Context, addition: Addition) -> tuple[str, int, str] | None:
    """The place of the double or sum that is added, as an address and a word, and the source of its multiplicity; None
    if it is alone."""
    component, _, monomial = addition
    if not isinstance(named(component.ring), RealRing) or monomial == ZERO:
        return None
    integers = [factor for factor in monomial.factors if ring_of(context, factor) == "integer"]
    (real,) = (factor for factor in monomial.factors if factor not in integers)
    place = _place(context, real)
    return None if place is None else (*place, product(context, integers, monomial.coefficient))


def _place(context: Context, real: ComponentOf | Value) -> tuple[str, int] | None:
    if isinstance(real, Value):
        return (context.elements if real.whole else context.doubles).get(real.name)
    holder = context.aliases[real.alias]
    if not isinstance(holder, View):
        return None
    return context.row(real.alias), row_layout(holder).offsets[real.component]
