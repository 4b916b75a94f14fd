"""Prints objects in notebooks and on terminals: rows, graphs of relations, and EXPLAIN."""

__all__ = ["completion", "explanation", "graph", "grid", "statistics"]
