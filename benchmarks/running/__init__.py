"""A run of many measurements: the schedule, turns of strategies, results on disk, and the guard."""

__all__ = ["check", "results", "run", "schedule"]
