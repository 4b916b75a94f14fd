"""Aggregate calls that become others: moments, and what is read of one payload, a cofactor or an element of a ring."""

__all__ = ["cofactors", "moments", "own_rings"]
