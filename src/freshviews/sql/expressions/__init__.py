"""Converts scalar expressions of SQL, with their operators, functions and casts, to typed expressions over columns."""

__all__ = [
    "arithmetic",
    "build",
    "calls",
    "cast",
    "coerce",
    "expression",
    "functions",
    "logic",
    "nulls",
]
