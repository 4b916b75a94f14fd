"""Views: run their compiled programs, read and recompute their results."""

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
