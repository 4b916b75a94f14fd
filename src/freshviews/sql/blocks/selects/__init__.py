"""Binds queries and their SELECTs, clause by clause."""

__all__ = ["query_expression"]
