"""HTTP for a pipeline: the server of both, the metrics of a run, and the pages of ``freshviews serve``."""

__all__ = ["server", "site"]
