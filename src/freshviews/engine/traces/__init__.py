"""Maintains traced joins: takes edits of their inputs, and returns the changed rows of the join."""

__all__ = ["traced"]
