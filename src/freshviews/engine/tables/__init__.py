"""Stores base tables: rows, keys, foreign keys, windows, the clock."""

__all__ = [
    "base_table",
    "clock",
    "constraints",
    "foreign_keys",
    "growing",
    "packing",
    "table_image",
    "table_state",
    "window",
]
