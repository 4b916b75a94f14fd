"""Defines queries, and computes the structural properties that decide how queries are maintained.

::

    query, block                             what the SQL front end makes of a SELECT
    sharing                                  many sums of products become one aggregate
    span                                     the condition that a row is in a window frame
    hypergraph                               which variables occur in which atom
    acyclic, free_connex, hierarchical       classes of queries
    dependencies                             keys, closures, reducts
    edge_cover, width                        exponents of costs
    variable_order, order_search             variable orders
    query_class                              names the class of a query
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
    "span",
    "variable_order",
]
