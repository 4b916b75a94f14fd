"""Rows that a program returns: a growing array of rows, and the values of aggregates from payloads."""

__all__ = ["buffer", "drain", "results"]
