"""Resolves the clauses of SELECTs: sources, joins, subqueries, set operations, grouping and aggregates."""

__all__ = ["bound", "building", "limit", "selects", "set_operation"]
