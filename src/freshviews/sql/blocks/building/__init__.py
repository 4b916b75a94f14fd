"""Converts a bound SELECT to a block: places predicates, makes variables, and splits sums into products."""

__all__ = ["block_of_select", "narrowing", "text_parts", "variables"]
