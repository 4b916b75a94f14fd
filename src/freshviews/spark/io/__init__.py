"""Sources and sinks of a pipeline."""

__all__ = ["delivery", "java_errors", "places", "sinks", "sources"]
