"""Payloads in generated code: ``integers`` is inlined arithmetic, ``elements`` calls the kernels of the other rings."""

__all__ = ["doubles", "elements", "integers"]
