"""Represents scalar expressions as trees, defines their operations, and evaluates and prints them."""

__all__ = [
    "binary",
    "casts",
    "host_evaluation",
    "intervals",
    "like",
    "nodes",
    "number_formats",
    "ops",
    "parsing",
    "printer",
    "strings",
    "texts",
    "wide",
    "zones",
]
