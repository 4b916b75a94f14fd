"""Traced joins: they take edits of their inputs, and return the derivations that are lost and new."""

__all__ = ["traced"]
