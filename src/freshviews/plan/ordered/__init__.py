"""Has strategies over ordered rows: for the first rows, frames, and the rows whose running sum is within a limit."""

__all__ = ["spans", "threshold", "top_k"]
