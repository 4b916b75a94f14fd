"""Output of a program: a growing array of rows, and the values of aggregates from payloads."""

__all__ = ["buffer", "drain", "results"]
