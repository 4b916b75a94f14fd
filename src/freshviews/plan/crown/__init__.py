"""Propagates changes by semi-joins along a join tree, without storing joins (CROWN, Change Propagation Without Joins).

A cyclic query has no join tree. So groups of its relations, the *bags*, are joined first, and the tree connects bags.
"""

__all__ = ["crown", "free_connex_query", "tree_choice"]
