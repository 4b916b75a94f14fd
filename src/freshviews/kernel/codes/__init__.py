"""Converts Arrow columns and strings to codes."""

__all__ = ["ingest", "string_heap", "string_search", "string_slots", "text_columns", "texts"]
