"""Queries and their SELECTs, bound clause by clause."""

__all__ = ["query_expression"]
