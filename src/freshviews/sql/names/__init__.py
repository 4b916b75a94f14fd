"""Resolves the column names of a query, and expands ``*`` in SELECT lists."""

__all__ = ["marks", "scope", "star"]
