"""Aggregate calls in terms of others: moments, cofactors, and values of an element of a user's ring."""

__all__ = ["cofactors", "moments", "own_rings"]
