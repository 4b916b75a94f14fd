"""Query blocks: SELECTs bound to sources, joins, subqueries, set operations, grouping, aggregates."""

__all__ = ["bound", "building", "limit", "selects", "set_operation"]
