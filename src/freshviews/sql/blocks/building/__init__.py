"""Turns a bound SELECT into a block: it places predicates, makes variables, and splits sums into lifts."""

__all__ = ["block_of_select", "narrowing", "text_parts", "variables"]
