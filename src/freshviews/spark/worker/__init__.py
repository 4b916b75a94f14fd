"""Code that runs in Python workers of executors, and passes rows to the engines of their cells."""

__all__ = ["advance", "between_tasks", "intake", "rows", "worker"]
