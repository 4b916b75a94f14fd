"""Binds TRY_SUM, variance and regression, percentiles, cofactors, and the aggregates of users' rings."""

__all__ = ["cofactors", "halves", "moments", "own_rings", "percentiles"]
