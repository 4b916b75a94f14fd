"""Advice on a recorded stream: how hard it is for a strategy."""

__all__ = ["enclosure"]
