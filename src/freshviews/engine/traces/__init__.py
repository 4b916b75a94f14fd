"""Maintains traced joins. A trace records the operations of a join. An edit of an input repeats only some of them."""

__all__ = ["traced"]
