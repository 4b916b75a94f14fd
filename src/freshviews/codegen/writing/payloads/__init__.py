"""Writes payloads: ``integers`` inlines arithmetic, ``elements`` calls kernels, ``own_rings`` writes users' rings."""

__all__ = ["doubles", "elements", "integers", "own_rings"]
