"""A program as readable Python source, compiled by Numba and cached on disk."""

__all__ = ["block", "layout", "module", "reading", "writing"]
