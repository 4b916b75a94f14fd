"""Binds the statements of a script: definitions of tables, views and functions, changes of rows, streaming tables."""

__all__ = ["data", "ddl", "functions", "parameters", "relations", "sql_script", "streaming", "units"]
