"""Maintains results over ordered rows: first rows, window frames, and rows whose running sum is within a limit."""

__all__ = ["spans", "threshold", "top_k"]
