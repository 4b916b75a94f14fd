"""Statements of a script: CREATE, ALTER and DROP, statements that change rows, and streaming tables."""

__all__ = ["data", "ddl", "functions", "parameters", "relations", "sql_script", "streaming", "units"]
