"""Implements the commands ``freshviews check``, ``explain``, ``run``, ``status``, ``query``, ``serve`` and others."""

__all__ = ["main"]
