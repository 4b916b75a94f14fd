"""Measures what updates of views cost, shows it, and finds cheaper plans. Also answers SHOW, DESCRIBE and EXPLAIN."""

__all__ = ["degrees", "explaining", "listing", "questions", "replanning", "samples"]
