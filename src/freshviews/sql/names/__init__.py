"""The meaning of names in a query: scopes, and stars."""

__all__ = ["marks", "scope", "star"]
