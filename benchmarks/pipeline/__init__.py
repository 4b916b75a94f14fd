"""Workloads on Spark: from files of changes to views, timed by the wall clock.

``run`` and ``state`` are shared by the workloads.
"""

__all__ = ["fixed", "freshness", "graph", "restart", "run", "star", "state", "upserts", "workers"]
