"""Rows that a program returns: the buffer they are written to, and aggregates computed from payloads."""

__all__ = ["buffer", "drain", "results"]
