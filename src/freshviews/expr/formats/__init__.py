"""Reads and writes texts that have a given form: formatted numbers, URLs, and JSON."""

__all__ = ["json_texts", "number_formats", "urls"]
