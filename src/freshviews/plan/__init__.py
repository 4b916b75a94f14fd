"""Strategies: each a pure function from a Query to a Program, in a registry by name."""

from collections.abc import Callable

from freshviews.plan import change_propagation, crown, first_order, higher_order, recompute, view_tree
from freshviews.program.nodes import Program
from freshviews.query.query import Query

STRATEGIES: dict[str, Callable[[Query], Program]] = {
    "recompute": recompute.plan,
    "first_order": first_order.plan,
    "change_propagation": change_propagation.plan,
    "higher_order": higher_order.plan,
    "view_tree": view_tree.plan,
    "crown": crown.plan,
}
