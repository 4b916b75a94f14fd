"""Strategies: each a pure function from a Query to a Program, in a registry by name."""

from collections.abc import Callable

from freshviews.plan import recompute
from freshviews.plan.crown import propagation as crown
from freshviews.plan.delta import change_propagation, first_order, higher_order, view_tree
from freshviews.plan.eps import triangle as ivm_eps
from freshviews.plan.eps import triangle_linear as ivm_eps_linear
from freshviews.plan.trie import incremental_trie_join, trie_join
from freshviews.program.program import Program
from freshviews.query.query import Query

STRATEGIES: dict[str, Callable[[Query], Program]] = {
    "recompute": recompute.plan,
    "first_order": first_order.plan,
    "change_propagation": change_propagation.plan,
    "higher_order": higher_order.plan,
    "view_tree": view_tree.plan,
    "crown": crown.plan,
    "ivm_eps": ivm_eps.plan,
    "ivm_eps_linear": ivm_eps_linear.plan,
    "trie_join": trie_join.plan,
    "incremental_trie_join": incremental_trie_join.plan,
}

__all__ = ["crown", "delta", "explain", "passes", "planner", "trie"]
