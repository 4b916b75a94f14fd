"""A view's compiled program and native state: run, read, recomputed."""

__all__ = ["host", "in_order", "maintained", "native", "runtime"]
