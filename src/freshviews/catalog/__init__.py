"""Defines tables and views, their keys, windows and watermarks, the clock, and the limit on the nesting of SQL."""

__all__ = [
    "catalog",
    "clock",
    "definitions",
    "functions",
    "kept_rings",
    "known_functions",
    "matrices",
    "nesting",
    "rings",
    "row_keys",
    "watermark",
    "widening",
    "window",
]
