"""Measures the cost of updates, and finds cheaper plans.

``samples`` draws rows, ``degrees`` counts the degrees in them for ``plan.costs``, ``replanning`` compares join trees
and strategies, ``explaining`` makes EXPLAIN, ``listing`` lists relations.
"""

__all__ = ["degrees", "explaining", "listing", "replanning", "samples"]
