"""Turns a micro-batch into a committed and delivered version, in Spark's driver."""

__all__ = ["explain", "polling", "progress", "routing", "run", "version"]
