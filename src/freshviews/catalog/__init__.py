"""Defines tables and views, their keys and windows, the clock, and the limit on the nesting of SQL."""

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
    "widening",
    "window",
]
