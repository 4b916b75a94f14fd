"""Payloads in generated code.

``integers`` writes inlined arithmetic, ``elements`` calls of the kernels of other rings, ``own_rings`` the kernels of
users' rings.
"""

__all__ = ["doubles", "elements", "integers", "own_rings"]
