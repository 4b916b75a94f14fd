"""Rewrites subqueries as joins: names of the enclosing query, correlation, values."""

__all__ = ["correlation", "subquery"]
