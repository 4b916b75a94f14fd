"""Binds FROM clauses: builds trees of joins, rewrites outer joins as lookups, makes subqueries independent queries."""

__all__ = ["dependent", "from_clause", "lowering", "tree"]
