"""Code that runs in Python workers of executors: rows through the engines of their cells."""

__all__ = ["advance", "between_tasks", "intake", "rows", "worker"]
