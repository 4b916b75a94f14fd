"""Sources and sinks of a pipeline."""

__all__ = ["columns", "delivery", "java_errors", "places", "sinks", "sources"]
