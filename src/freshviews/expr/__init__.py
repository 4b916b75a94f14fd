"""Scalar expressions: nodes, the table of operations, and host operations on strings."""

__all__ = ["casts", "host", "nodes", "ops", "printer"]
