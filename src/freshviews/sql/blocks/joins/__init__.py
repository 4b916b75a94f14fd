"""FROM clauses: trees of joins, lowered to sources with a key, and independent of enclosing queries."""

__all__ = ["dependent", "from_clause", "lowering", "tree"]
