"""Scalar SQL to typed expressions: types, casts, functions, operators."""

__all__ = ["build", "cast", "coerce", "expression", "logic", "nulls"]
