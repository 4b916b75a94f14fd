"""Binds query blocks: SELECTs with their sources, joins, subqueries, set operations, grouping, aggregates."""

__all__ = ["bound", "building", "limit", "selects", "set_operation"]
