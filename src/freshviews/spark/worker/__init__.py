"""Code that runs in Python workers of executors: rows through the engines of their cells."""

__all__ = ["advance", "intake", "rows", "worker"]
