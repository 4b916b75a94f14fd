"""Output of a program: a growing array of rows, and the values of aggregates, computed from payloads."""

__all__ = ["buffer", "drain", "results"]
