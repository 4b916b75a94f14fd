"""Views that count and additions to them, for all IVM^eps strategies."""

from __future__ import annotations

from freshviews.program.payload import COUNT, Component, Monomial
from freshviews.program.statements import Add, Statement
from freshviews.program.views import View

Body = tuple[Statement, ...]

COUNTED = (Component(COUNT, "integer"),)
"""The payload of a view that only counts: heavy values, rows of a view by some of their variables."""


def add_count(view: View, sign: int, key: tuple[str, ...] | None = None) -> Add:
    """Add 1 or -1 to a counting view, under its own variables or under ``key``."""
    return Add(view.name, view.key if key is None else key, (COUNT,), (Monomial((), sign),))
