"""Aggregates that are computed from other aggregates: moments, cofactors, and values of an element of a user's ring."""

__all__ = ["cofactors", "moments", "own_rings"]
