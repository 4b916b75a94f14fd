"""Parses SQL text to trees, with places in the text, type names, and refused clauses."""

__all__ = ["clock", "fields", "many", "operators", "parse", "plainer", "refuse", "shape", "terms", "typenames"]
