"""FROM clauses: builds trees of joins, lowers them to sources with a key, and separates them from enclosing queries."""

__all__ = ["dependent", "from_clause", "lowering", "tree"]
