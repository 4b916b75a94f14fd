"""Converts a bound SELECT to a block.

The modules place predicates, make the variables on which tables join, and split the argument of a SUM into factors.
"""

__all__ = ["block_of_select", "narrowing", "text_parts", "variables"]
