"""Maintains traced joins. A trace records the operations of a join, so that an edit of an input repeats only some."""

__all__ = ["traced"]
