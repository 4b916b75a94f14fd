"""Scalar expressions: nodes, the table of operations, host operations on strings, printed text."""

__all__ = ["casts", "host_evaluation", "like", "nodes", "ops", "parsing", "printer", "strings", "texts"]
