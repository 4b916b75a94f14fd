"""Defines tables and views, their keys and windows, and the limit on the nesting of SQL."""

__all__ = ["catalog", "definitions", "kept_rings", "matrices", "nesting", "rings", "row_keys", "widening", "window"]
