"""Runs SQL scripts. Converts INSERT, UPDATE, DELETE and MERGE to inserted and deleted rows."""

__all__ = ["counts", "script"]
