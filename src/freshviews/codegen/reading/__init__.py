"""Writes the source of readers: of the change of a result, of its rows, and of one row; and output expressions."""

__all__ = ["enumeration", "evaluation", "listing", "member", "projection", "readers", "settling"]
