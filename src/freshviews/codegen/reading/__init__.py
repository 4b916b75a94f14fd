"""Writes the source of functions that read the change of a result, its rows or one row, and of output expressions."""

__all__ = ["enumeration", "evaluation", "listing", "member", "projection", "readers", "settling"]
