"""Runs of many measurements: the schedule, turns of all strategies, results on disk, and the guard."""

__all__ = ["check", "results", "run", "schedule"]
