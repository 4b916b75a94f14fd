"""Converts a bound SELECT to a block: places predicates, makes variables, and splits the argument of a SUM into
factors, one per table.
"""

__all__ = ["block_of_select", "narrowing", "text_parts", "variables"]
