"""Strategies that propagate deltas: first order, higher order, change propagation and view trees. They share loop nests
(``nest``), the time of an update (``exponents``), range sums in the place of loops (``range_sums``), and lookups of
rows by a key (``keyed``)."""

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
