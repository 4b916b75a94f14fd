"""Strategies over rows in order: the first rows of an order, and the rows selected by a threshold over a range."""

__all__ = ["threshold", "top_k"]
