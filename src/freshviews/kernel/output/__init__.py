"""Collects the rows that a program returns, and computes the values of their aggregates."""

__all__ = ["buffer", "drain", "results"]
