"""Queries, and the structural properties that decide how to maintain them.

``query`` and ``block`` are the output of the SQL front end. The other modules are pure functions over names:
``hypergraph``; the classes ``acyclic``, ``free_connex``, ``hierarchical``; ``dependencies`` (keys, closures, reducts);
``edge_cover`` and ``width``; ``variable_order`` and its ``order_search``; ``query_class`` sums up. ``sharing`` combines
sums of products into one aggregate.
"""

__all__ = [
    "acyclic",
    "block",
    "dependencies",
    "edge_cover",
    "free_connex",
    "grouping_sets",
    "hierarchical",
    "hypergraph",
    "hypertree",
    "join_trees",
    "query",
    "query_class",
    "sharing",
    "variable_order",
]
