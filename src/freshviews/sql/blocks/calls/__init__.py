"""Binds TRY_SUM, variance, regression, percentiles, cofactors, and users' aggregates of plain Python or over rings."""

__all__ = ["cofactors", "halves", "moments", "own_aggregates", "own_rings", "percentiles", "wide_sums"]
