"""Strategies over ordered rows: the first rows, and the rows whose running sum is within a limit."""

__all__ = ["threshold", "top_k"]
