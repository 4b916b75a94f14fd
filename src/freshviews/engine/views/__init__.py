"""Runs the compiled programs of views, and reads and recomputes their results."""

__all__ = [
    "change_reader",
    "contents",
    "failing_row",
    "failure",
    "in_order",
    "maintained",
    "output",
    "own_rings",
    "view_state",
]
