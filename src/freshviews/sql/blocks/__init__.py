"""Converts parsed SELECTs to blocks, the input of the planner.

Resolves names and types in the clauses of a SELECT: joins, subqueries, set operations, window functions, aggregates.
"""

__all__ = ["bound", "building", "calls", "forms", "limit", "selects", "set_operation"]
