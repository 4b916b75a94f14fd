"""Advice on a recorded stream: enclosureness, and the updates of bags."""

__all__ = ["bag_updates", "enclosure"]
