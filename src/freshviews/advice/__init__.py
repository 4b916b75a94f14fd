"""Estimates how much maintaining a query would cost, from a recorded stream of updates.

The measure is the enclosureness: how many other tuples come and go, one after another, while a tuple lives, on average.
"""

__all__ = ["bag_updates", "enclosure"]
