"""The driver's code: turns a micro-batch into a committed and delivered version."""

__all__ = ["explain", "polling", "progress", "routing", "run", "version"]
