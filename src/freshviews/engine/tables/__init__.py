"""Stores base tables: rows, keys, foreign keys, windows."""

__all__ = ["base_table", "constraints", "foreign_keys", "growing", "packing", "table_image", "table_state", "window"]
