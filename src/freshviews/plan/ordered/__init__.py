"""Has strategies over ordered rows: for the first rows, and for the rows whose running sum is within a limit."""

__all__ = ["threshold", "top_k"]
