"""Tables and views that are known: definitions, keys, windows, and the names SQL may use."""

__all__ = ["catalog", "definitions", "kept_rings", "matrices", "nesting", "rings", "widening", "window"]
