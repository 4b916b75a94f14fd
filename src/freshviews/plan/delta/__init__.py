"""Strategies that propagate deltas: first order, higher order, change propagation and view trees. They share the
nesting of loops (``nest``), the time of an update (``exponents``), range sums instead of loops (``range_sums``), and
lookups of rows by a key (``keyed``).
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
