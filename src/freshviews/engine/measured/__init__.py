"""Measures the cost of updates, and finds cheaper plans.

``samples`` draws rows, ``degrees`` counts the degrees in them for ``plan.costs``, ``replanning`` compares join trees
and strategies.
"""

__all__ = ["degrees", "replanning", "samples"]
