"""Sources and sinks of a pipeline."""

__all__ = ["places", "sinks", "sources"]
