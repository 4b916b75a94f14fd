"""Binds TRY_SUM, variance and regression, percentiles, cofactors, and users' aggregates of plain Python and of rings."""

__all__ = ["cofactors", "halves", "moments", "own_aggregates", "own_rings", "percentiles"]
