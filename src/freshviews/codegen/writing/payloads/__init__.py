"""Writes the arithmetic of payloads, which are the ring elements of rows.

``integers`` inlines arithmetic on integers, and ``elements`` calls kernels for other rings. ``doubles`` adds to many
sums of doubles, and ``own_rings`` writes functions for the rings of users.
"""

__all__ = ["doubles", "elements", "integers", "own_rings"]
