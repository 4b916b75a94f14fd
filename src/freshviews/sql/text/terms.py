"""Splits a condition at AND: ``a = 1 AND b = 2`` has the terms ``a = 1`` and ``b = 2``."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from freshviews.sql.text.parse import Node


def terms_of(condition: Node) -> Iterator[Node]:
    """The terms that AND joins."""
    ahead = [condition]
    while ahead:
        inner = ahead.pop().unnest()
        if isinstance(inner, exp.And):
            ahead += [inner.expression, inner.this]
        else:
            yield inner


def follows(term: Node) -> bool:
    """True if AND joins the term to one before it, which may exclude it."""
    inner, around = term, term.parent
    while isinstance(around, (exp.Paren, exp.Not, exp.And)):
        if isinstance(around, exp.And) and around.expression is inner:
            return True
        inner, around = around, around.parent
    return False


def has_subquery(node: Node) -> bool:
    return node.find(exp.Select) is not None
