"""Statements of a script: CREATE, ALTER and DROP, and streaming tables."""

__all__ = ["sql_script", "streaming"]
