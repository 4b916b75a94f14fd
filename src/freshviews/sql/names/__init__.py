"""What a name in a query means: scopes, and stars."""

__all__ = ["scope", "star"]
