"""An HTTP server, for the metrics of a running pipeline and for the pages of ``freshviews serve``."""

__all__ = ["checkpoint", "server", "site"]
