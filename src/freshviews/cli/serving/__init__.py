"""Serves the metrics of a pipeline over HTTP, and its views for ``freshviews serve``."""

__all__ = ["checkpoint", "server", "site"]
