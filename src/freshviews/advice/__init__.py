"""Estimates from a recorded stream of updates how much maintaining a query would cost.

The measure is the enclosureness: how many lifespans of other tuples lie within the lifespan of a tuple, on average.
"""

__all__ = ["bag_updates", "enclosure"]
