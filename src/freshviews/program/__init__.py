"""The trigger language, between strategies and back ends: nodes, printer, rewriting."""

__all__ = [
    "comparison",
    "intersections",
    "nodes",
    "order",
    "parts",
    "printer",
    "reference",
    "rewrite",
    "rule",
    "traced",
]
