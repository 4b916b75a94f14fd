"""FROM clauses: builds trees of joins, turns outer joins into lookups, makes dependent queries independent."""

__all__ = ["dependent", "from_clause", "lowering", "tree"]
