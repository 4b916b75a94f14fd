"""How objects look in a notebook and on a terminal: grids of rows, graphs of what reads what, and EXPLAIN."""

__all__ = ["completion", "explanation", "graph", "grid", "statistics"]
