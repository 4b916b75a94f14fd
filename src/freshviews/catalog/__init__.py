"""Definitions of known tables and views, their keys and windows, and the names that SQL may use."""

__all__ = ["catalog", "definitions", "kept_rings", "matrices", "nesting", "rings", "widening", "window"]
