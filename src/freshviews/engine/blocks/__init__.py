"""Runs compiled blocks. A block is one SELECT of a view. Its triggers change its state, which is native memory."""

__all__ = ["at_once", "host_columns", "lanes", "native", "passes", "runtime"]
