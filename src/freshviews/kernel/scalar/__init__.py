"""Scalar operations over 64-bit codes: arithmetic, dates, logic, exact sums of doubles."""

__all__ = ["checked", "dates", "failure", "operations", "payload", "real"]
