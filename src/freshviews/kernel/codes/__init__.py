"""Arrow columns and strings to 64-bit codes."""

__all__ = ["ingest", "string_search", "string_slots"]
