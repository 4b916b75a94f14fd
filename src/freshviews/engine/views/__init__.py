"""A view's compiled program and native state: run, read, recomputed."""

__all__ = ["contents", "failure", "fault", "in_order", "maintained", "output", "view_state"]
