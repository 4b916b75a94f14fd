"""FROM clauses: the tree of joins, its outer, semi and anti joins as sources with a key, and what depends on queries
around.
"""

__all__ = ["dependent", "from_clause", "lowering", "tree"]
