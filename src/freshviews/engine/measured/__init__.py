"""Measures the cost of updates, and finds cheaper plans."""

__all__ = ["degrees", "explaining", "listing", "questions", "replanning", "samples"]
