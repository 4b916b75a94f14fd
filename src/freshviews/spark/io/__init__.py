"""Sources and sinks of a pipeline."""

__all__ = [
    "arrow_files",
    "columns",
    "delivery",
    "envelope_keys",
    "java_errors",
    "places",
    "polled",
    "reach",
    "replaced_sinks",
    "sinks",
    "sources",
]
