"""Strategies that propagate deltas: first order, higher order, change propagation and view trees.

Shared modules: ``nest`` (nested loops), ``exponents`` (the time of an update), ``range_sums``, ``keyed`` (lookups by
key).
"""

__all__ = [
    "change_propagation",
    "first_order",
    "higher_order",
    "keyed",
    "nest",
    "range_sums",
    "recompute",
    "view_tree",
]
