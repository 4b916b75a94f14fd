"""An HTTP server for the metrics of a pipeline and for ``freshviews serve``."""

__all__ = ["checkpoint", "server", "site"]
