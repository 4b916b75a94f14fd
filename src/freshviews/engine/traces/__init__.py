"""Traced joins: the versions of their inputs and the batch of derivations they return."""

__all__ = ["traced"]
