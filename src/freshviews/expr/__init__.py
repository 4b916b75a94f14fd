"""Scalar expressions: nodes, operations, evaluation in Python, and printing."""

__all__ = [
    "binary",
    "casts",
    "host_evaluation",
    "like",
    "nodes",
    "number_formats",
    "ops",
    "parsing",
    "printer",
    "strings",
    "texts",
]
