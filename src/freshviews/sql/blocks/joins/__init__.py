"""FROM clauses: the tree of joins, and its outer, semi and anti joins as sources with a key."""

__all__ = ["from_clause", "lowering", "tree"]
