"""Sources and sinks of a pipeline."""

__all__ = ["delivery", "envelope_keys", "java_errors", "places", "sinks", "sources"]
