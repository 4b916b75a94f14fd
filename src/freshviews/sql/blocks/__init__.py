"""Query blocks: SELECTs bound to sources, joins, subqueries, set operations, grouping, aggregates."""

__all__ = ["block", "bound", "limit", "select", "set_operation", "variables"]
