"""Analyses a recorded stream of updates: its enclosureness, and how it changes the bags of a cyclic query."""

__all__ = ["bag_updates", "enclosure"]
