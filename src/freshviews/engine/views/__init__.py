"""A view's compiled program and native state: run, read, recomputed."""

__all__ = ["contents", "failure", "fault", "maintained", "output", "view_state"]
