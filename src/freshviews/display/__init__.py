"""Shows objects in notebooks and on terminals: grids of rows, graphs of the relations below a view, and EXPLAIN."""

__all__ = ["completion", "explanation", "graph", "grid", "statistics"]
