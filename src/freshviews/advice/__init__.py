"""Analyses a recorded stream of updates, to tell how expensive a query would be to maintain.

The measure is the enclosureness: how many lifespans of other tuples lie within the lifespan of a tuple, on average.
"""

__all__ = ["bag_updates", "enclosure"]
