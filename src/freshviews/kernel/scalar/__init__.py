"""Computes scalar operations on codes: arithmetic, dates, logic and conversions. Also adds doubles exactly."""

__all__ = ["checked", "dates", "failure", "floats", "operations", "payload", "real"]
