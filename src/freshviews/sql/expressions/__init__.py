"""Converts scalar SQL to typed expressions: types, casts, functions, operators."""

__all__ = [
    "arithmetic",
    "build",
    "calls",
    "cast",
    "coerce",
    "expression",
    "functions",
    "known_functions",
    "logic",
    "nulls",
]
