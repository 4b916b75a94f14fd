"""Computes the cost of an update under a program, from assumed or measured degrees of values.

``cost`` walks the triggers, ``degrees`` has the statistics, and ``comparison`` compares strategies.
"""

__all__ = ["comparison", "cost", "degrees", "lanes"]
