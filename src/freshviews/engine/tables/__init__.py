"""Stored base tables: rows, keys, foreign keys, windows."""

__all__ = ["base_check", "base_table", "foreign_keys", "image", "table_state", "window"]
