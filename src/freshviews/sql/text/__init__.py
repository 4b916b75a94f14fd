"""Parses SQL text to trees that keep places in the text, converts type names, and refuses unsupported clauses."""

__all__ = ["clock", "fields", "many", "operators", "parse", "pipes", "plainer", "refuse", "shape", "terms", "typenames"]
