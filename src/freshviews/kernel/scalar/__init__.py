"""Scalar operations on codes: arithmetic, dates, logic, conversions, and exact sums of doubles."""

__all__ = ["checked", "dates", "failure", "floats", "operations", "payload", "real"]
