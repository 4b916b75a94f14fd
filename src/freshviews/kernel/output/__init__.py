"""The output of a program: a growing array of rows, and the values of aggregates."""

__all__ = ["buffer", "drain", "results"]
