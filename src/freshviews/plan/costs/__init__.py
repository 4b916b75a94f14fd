"""Computes the cost of an update under a program, from assumed or measured degrees of values.

The degree of a value is the number of rows that have it. ``cost`` walks over the triggers, ``degrees`` has the
statistics, and ``comparison`` compares strategies.
"""

__all__ = ["comparison", "cost", "degrees", "lanes"]
