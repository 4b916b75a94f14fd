"""Scalar expressions: nodes, operations, their evaluation in Python, and their printed text."""

__all__ = ["casts", "host_evaluation", "like", "nodes", "ops", "parsing", "printer", "strings", "texts"]
