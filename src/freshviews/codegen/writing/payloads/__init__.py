"""Writes the arithmetic of payloads.

``integers`` inlines arithmetic on integers, and ``elements`` calls kernels. ``doubles`` adds to many sums of doubles,
and ``own_rings`` writes functions for the rings of users.
"""

__all__ = ["doubles", "elements", "integers", "own_rings"]
