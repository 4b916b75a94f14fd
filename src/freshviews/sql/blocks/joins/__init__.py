"""FROM clauses: trees of joins, their lowering to sources with a key, and their separation from enclosing queries."""

__all__ = ["dependent", "from_clause", "lowering", "tree"]
