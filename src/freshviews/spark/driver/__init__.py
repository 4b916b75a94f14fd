"""The driver: from a micro-batch to a committed and delivered version."""

__all__ = ["explain", "polling", "progress", "routing", "run", "version"]
