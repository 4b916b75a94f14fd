"""Statements that several IVM^eps strategies write: add a product to a view, count a heavy value, add a sum."""

from __future__ import annotations

from dataclasses import replace

from freshviews.plan.leaves import Carrier, all_components, product
from freshviews.plan.naming import RESULT
from freshviews.program.payload import COUNT, Component, ComponentOf, Monomial
from freshviews.program.statements import Add, Statement, Sum
from freshviews.program.views import View
from freshviews.query.query import Query

Body = tuple[Statement, ...]

COUNTED = (Component(COUNT, "integer"),)
"""The payload of a view that only counts: heavy values, rows of a view by some of their variables."""


def add_product(view: View, carriers: tuple[Carrier, ...], sign: int = 1) -> Add:
    """Add the product of ``carriers``, times ``sign``, to the row of ``view`` under its own variables."""
    payload = (replace(p, coefficient=sign * p.coefficient) for p in product(view.components, carriers))
    return Add(view.name, view.key, tuple(c.name for c in view.components), tuple(payload))


def add_count(view: View, sign: int, key: tuple[str, ...] | None = None) -> Add:
    """Add 1 or -1 to a counting view, under its own variables or under ``key``."""
    return Add(view.name, view.key if key is None else key, (COUNT,), (Monomial((), sign),))


def add_sum(query: Query, total: str, body: Body) -> Sum:
    """Add to the result what ``body`` sums up under the name ``total``. The free variables are bound before."""
    components = all_components(query)
    payload = tuple(Monomial((ComponentOf(total, c.name),)) for c in components)
    return Sum(total, components, body, (Add(RESULT, query.free, tuple(c.name for c in components), payload),))
