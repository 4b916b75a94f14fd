"""Queries, and the structural properties that decide how to maintain them.

``query`` and ``block`` are the output of the SQL front end. ``sharing`` combines sums of products into one aggregate.
The other modules are pure functions over names: ``hypergraph``; the classes ``acyclic``, ``free_connex``,
``hierarchical``; ``dependencies`` (keys, closures, reducts); ``edge_cover`` and ``width``; ``variable_order`` and
``order_search``; ``query_class``, which names the class of a query.
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
