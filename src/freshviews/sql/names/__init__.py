"""What a name in a query means: scopes, and stars."""

__all__ = ["marks", "scope", "star"]
