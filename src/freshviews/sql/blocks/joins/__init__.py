"""Binds FROM clauses: builds trees of joins, rewrites outer joins as lookups, and makes subqueries independent."""

__all__ = ["dependent", "from_clause", "lowering", "tree"]
