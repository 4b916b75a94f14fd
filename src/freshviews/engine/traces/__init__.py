"""Traced joins: they take edits of their inputs, and return the lost and the new derivations."""

__all__ = ["traced"]
