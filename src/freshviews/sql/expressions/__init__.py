"""Converts scalar SQL to typed expressions: types, casts, functions, operators."""

__all__ = ["arithmetic", "build", "cast", "coerce", "expression", "functions", "logic", "nulls"]
