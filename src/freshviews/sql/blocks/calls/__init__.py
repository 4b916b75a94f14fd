"""Aggregates that are computed from other aggregates: variance, cofactors, and results of users' rings."""

__all__ = ["cofactors", "halves", "moments", "own_rings", "percentiles"]
