"""Represents scalar expressions as trees, defines their operations, and evaluates and prints them."""

__all__ = [
    "binary",
    "casts",
    "formats",
    "host_evaluation",
    "intervals",
    "like",
    "nodes",
    "ops",
    "parsing",
    "printer",
    "strings",
    "texts",
    "wide",
    "zones",
]
