"""Defines tables and views, their keys, windows and watermarks, the clock, the zone, and the limit on nesting."""

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
    "timezone",
    "watermark",
    "widening",
    "window",
]
