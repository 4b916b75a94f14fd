"""Strategies that propagate deltas: first order, higher order, change propagation, view trees; and range sums in the
place of their loops, with the conditions (``bounds``) and lifts (``products``, ``linear``) that allow it, and what
EXPLAIN says of it (``visits``)."""

__all__ = [
    "bounds",
    "change_propagation",
    "first_order",
    "higher_order",
    "linear",
    "nest",
    "products",
    "ranges",
    "recompute",
    "view_tree",
    "visits",
]
