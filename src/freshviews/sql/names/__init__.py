"""Resolves names in a query: scopes, and ``*`` in SELECT lists."""

__all__ = ["marks", "scope", "star"]
