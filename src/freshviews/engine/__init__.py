"""Stores tables and views, commits batches, and notifies subscribers."""

__all__ = ["change", "codes", "commit", "database", "durable", "handles", "own_functions", "views"]
