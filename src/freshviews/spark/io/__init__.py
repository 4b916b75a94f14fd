"""Reads the sources of a pipeline and writes its sinks."""

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
