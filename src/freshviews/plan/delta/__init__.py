"""Has four strategies that propagate deltas: first order, higher order, change propagation and view trees.

A delta is the change of a relation or view. All strategies share ``nest`` (nested loops), ``exponents`` (bounds of the
update time), ``range_sums`` (sums of rows between bounds), and ``keyed`` (lookups by key).
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
