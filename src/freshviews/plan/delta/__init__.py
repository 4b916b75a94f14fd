"""Has four strategies that propagate deltas: first order, higher order, change propagation and view trees.

A delta is the change of a relation or view. Shared modules are ``nest`` (nested loops), ``exponents`` (the time of an
update), ``range_sums``, and ``keyed`` (lookups by key).
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
