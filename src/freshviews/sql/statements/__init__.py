"""Statements of a script: CREATE, ALTER and DROP, and streaming tables."""

__all__ = ["relations", "sql_script", "streaming"]
