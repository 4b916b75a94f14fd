"""Binds TRY_SUM, variance, regression, percentiles, cofactors, and aggregates of users: of plain Python, of rings."""

__all__ = ["cofactors", "halves", "moments", "own_aggregates", "own_rings", "percentiles", "wide_sums"]
