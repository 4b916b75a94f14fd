"""Stores the rows of base tables, checks keys and foreign keys, and moves windows and watermarks."""

__all__ = [
    "base_table",
    "clock",
    "constraints",
    "foreign_keys",
    "growing",
    "packing",
    "table_image",
    "table_state",
    "watermark",
    "window",
]
