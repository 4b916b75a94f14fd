"""The driver: from a micro-batch to a committed and delivered version."""

__all__ = ["explain", "progress", "routing", "run", "version"]
