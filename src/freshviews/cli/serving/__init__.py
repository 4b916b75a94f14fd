"""HTTP: a server, the metrics of a running pipeline, and the pages of ``freshviews serve``."""

__all__ = ["server", "site"]
