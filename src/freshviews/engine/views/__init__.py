"""A view's compiled program and native state: run, read, recomputed."""

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
