"""Converts Arrow columns and strings to codes. A code is the word that represents a value."""

__all__ = ["ingest", "string_heap", "string_search", "string_slots", "text_columns", "texts"]
