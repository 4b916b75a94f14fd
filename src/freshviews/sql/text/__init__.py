"""Parses SQL to trees, whose nodes have positions in the text; converts type names; refuses unsupported clauses."""

__all__ = ["clock", "fields", "many", "operators", "parse", "pipes", "plainer", "refuse", "shape", "terms", "typenames"]
