"""Strategies that propagate deltas: first order, higher order, change propagation, view trees; and range sums in the
place of their loops, with the conditions (``bounds``) and lifts (``products``) that allow it."""

__all__ = ["bounds", "change_propagation", "first_order", "higher_order", "nest", "products", "ranges", "view_tree"]
