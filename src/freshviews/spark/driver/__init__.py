"""Turns each micro-batch (the rows that Spark reads at once) into a committed and delivered version.

This package runs in Spark's driver.
"""

__all__ = ["explain", "polling", "progress", "routing", "run", "version"]
