"""Strategies that propagate deltas: first order, higher order, change propagation, view trees."""

__all__ = ["change_propagation", "first_order", "higher_order", "nest", "view_tree"]
