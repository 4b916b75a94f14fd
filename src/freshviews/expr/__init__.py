"""Scalar expressions: nodes, operations, their evaluation in Python, and their printed text."""

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
