"""Maintains single views: runs the compiled program of each block of a view, and reads the rows of the view."""

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
