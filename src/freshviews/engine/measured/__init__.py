"""Measures the cost of updates, and finds cheaper plans.

``samples`` draws rows, ``degrees`` counts the degrees in them for ``plan.costs``, ``replanning`` compares join trees
and strategies, ``explaining`` makes EXPLAIN, ``listing`` lists relations, ``questions`` answers SHOW,
DESCRIBE and EXPLAIN.
"""

__all__ = ["degrees", "explaining", "listing", "questions", "replanning", "samples"]
