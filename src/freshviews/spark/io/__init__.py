"""Sources and sinks of a pipeline."""

__all__ = ["java_errors", "places", "sinks", "sources"]
