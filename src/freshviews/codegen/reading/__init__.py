"""Writes the functions that read a result: its change, its rows or one row."""

__all__ = ["enumeration", "evaluation", "listing", "member", "projection", "readers", "settling"]
