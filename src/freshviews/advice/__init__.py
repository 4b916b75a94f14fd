"""Analyses a recorded stream of updates: its enclosureness, and the updates that it causes in bags."""

__all__ = ["bag_updates", "enclosure"]
