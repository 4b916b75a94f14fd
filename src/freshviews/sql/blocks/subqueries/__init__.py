"""Rewrites subqueries as joins, and comparisons with running sums as internal views."""

__all__ = ["correlation", "subquery"]
