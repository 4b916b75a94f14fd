"""Payloads in generated code: ``integers`` is inlined arithmetic, ``elements`` calls the kernels of the other rings,
``own_rings`` writes those of users' rings."""

__all__ = ["doubles", "elements", "integers", "own_rings"]
